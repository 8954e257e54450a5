"""What servers are asked by their system account: who is connected, and to end a connection."""

from __future__ import annotations

from contextlib import suppress

import nats.errors
from nats.aio.client import Client
from pydantic_core import to_json

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.permissions import disconnecting
from ioa.errors import ForbiddenError
from ioa.ports.connections import ConnectionId
from ioa.protocol import subjects


def check_may_ask(client: Client, subject: str, asker: str) -> None:
    """Say what is to be done where the server has refused what was asked lately.

    Raises:
        ForbiddenError: The authorization of the servers is older than who asks.
    """
    if may_not_publish(client, subject):
        raise ForbiddenError(
            f"The authorization of nats-server is older than this {asker}, which may not use {subject}.",
            hint="Run `ioa credentials upgrade`, and restart nats-server.",
        )


async def ask_who_is_connected(client: Client, inbox: str, *, sort: str, most: int, offset: int = 0) -> None:
    """Have each server list so many connections, in an order that it knows; nobody is asked while this connection is away."""
    if not client.is_connected:  # nats-py would keep it, and ask so many times at once when the server is back
        return
    wanted = to_json({"auth": True, "sort": sort, "limit": most, "offset": offset})
    with suppress(nats.errors.Error, OSError):
        await client.publish(subjects.SERVER_CONNECTIONS, wanted, reply=inbox)


async def end_connection(client: Client, connection: ConnectionId, inbox: str) -> None:
    """Tell its server, which heeds only who wants an answer. None is waited for: while one is ended, the next one sends."""
    with suppress(nats.errors.Error, OSError):
        request = to_json({"cid": connection.number})
        await client.publish(disconnecting(connection.server), request, reply=inbox)
