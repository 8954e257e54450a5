"""One nats-server for many tests: each test has an account of its own, and so its own subjects and streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import nats

from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server

_ACCOUNTS = 2_000
"""Maximum accounts of one server, each used once."""
_SYSTEM, _PASSWORD = "SYS", "test"


class SharedNats:
    """A nats-server that gives each test an empty account with JetStream."""

    def __init__(self, server: NatsServer) -> None:
        self._server = server
        self._numbers = count()

    @asynccontextmanager
    async def account(self) -> AsyncIterator[str]:
        """Yield the URL of an unused account; delete the account's streams afterwards."""
        number = next(self._numbers)
        assert number < _ACCOUNTS, "the server has no unused account left"
        try:
            yield self._url(_name(number))
        finally:
            client = await nats.connect(self._url(_SYSTEM))
            await client.request(f"$JS.API.ACCOUNT.PURGE.{_name(number)}", b"", timeout=10)
            await client.close()

    def _url(self, user: str) -> str:
        return self._server.url.replace("//", f"//{user}:{_PASSWORD}@")


@asynccontextmanager
async def open_shared_nats(folder: Path) -> AsyncIterator[SharedNats]:
    """Start the server with its accounts."""

    def account(name: str) -> dict[str, object]:
        return {"users": [{"user": name, "password": _PASSWORD}]}

    accounts = {_name(number): {**account(_name(number)), "jetstream": "enabled"} for number in range(_ACCOUNTS)}
    authorization = {"system_account": _SYSTEM, "accounts": {_SYSTEM: account(_SYSTEM), **accounts}}
    async with open_nats_server(folder, None, authorization=json.dumps(authorization)) as server:
        yield SharedNats(server)


def _name(number: int) -> str:
    return f"test-{number}"
