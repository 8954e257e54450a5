"""What tests do to a nats-server that nobody else should."""

from __future__ import annotations

import asyncio
import os
import signal

from nats.aio.client import Client

from ioa.adapters.nats.wire.connection import _LastingClient
from ioa.adapters.nats.wire.embedded_server import NatsServer


async def crash(server: NatsServer) -> None:
    """Kill the server with SIGKILL and return once it is gone. `server.start()` brings it back on the same port and folder."""
    os.kill(server.pid, signal.SIGKILL)
    await server.wait()


async def ignore_refused_subscriptions(client: Client) -> None:
    """Keep a connection of `open_connection` open after the server refuses a subscription, which ends its block otherwise."""
    assert isinstance(client, _LastingClient)
    await asyncio.sleep(0)  # the task that waits for a refusal waits for the first future
    client.failed = asyncio.get_running_loop().create_future()
