"""Whoever listens to requests ends when it is to, whatever it does just then."""

from __future__ import annotations

import asyncio
from typing import cast

from nats.aio.client import Client

from ioa.adapters.nats.listening import Listener

_AT_MOST = 10


class _Subscription:
    """Of which the server answers just as the task is cancelled that ends it, which nats-py then does not tell."""

    _received, _max_msgs, _id = 0, 0, 1

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining

    async def unsubscribe(self, limit: int = 0) -> None:
        """Be for so many messages."""

    async def drain(self) -> None:
        """Wait for the server."""
        self._draining.set()
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return


class _Client:
    def __init__(self) -> None:
        self.draining = asyncio.Event()
        self.subscribed = 0

    async def subscribe(self, *_: object, **__: object) -> _Subscription:
        """Listen."""
        self.subscribed += 1
        return _Subscription(self.draining)

    def _remove_sub(self, _sid: int) -> None:
        """Forget it."""


async def test_who_rests_ends_at_once() -> None:
    """Nor is anything listened to anew, which nobody would end."""
    client = _Client()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        listener = Listener(cast(Client, client), "echo", "q", None, tuple, group, _AT_MOST)
        await listener.open(lambda _: None)
        listener.rest()
        await client.draining.wait()
        await listener.aclose()
    assert client.subscribed == 1
