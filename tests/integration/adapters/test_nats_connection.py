"""Leaving a connection behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ioa.adapters.nats_connection import NatsSettings, open_connection
from ioa.adapters.nats_server import NatsServer


def _interrupted(close: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Coroutine[Any, Any, None]]:
    async def closing() -> None:
        await close()
        raise asyncio.CancelledError

    return closing


async def test_leaving_is_no_cancellation(nats_server: NatsServer) -> None:
    """When nats-py, closing, stumbles over a task that it has cancelled itself, whoever leaves the block goes on."""
    async with open_connection(NatsSettings(nats_server.url, "leaving")) as client:
        client.close = _interrupted(client.close)  # type: ignore[method-assign]
    assert client.is_closed


async def test_a_cancellation_while_leaving_counts(nats_server: NatsServer) -> None:
    """Who is cancelled while the connection is being closed does not go on."""
    leaving = asyncio.Event()

    async def stay() -> None:
        async with open_connection(NatsSettings(nats_server.url, "leaving")) as client:
            close = client.close

            async def close_for_ever() -> None:
                await close()
                leaving.set()
                await asyncio.Event().wait()

            client.close = close_for_ever  # type: ignore[method-assign]

    async with asyncio.TaskGroup() as group:
        task = group.create_task(stay())
        await leaving.wait()
        task.cancel()
    assert task.cancelled()
