"""Taking the messages of a subscription as they are read off the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg


class MessageSink(asyncio.Future[Msg]):
    """Give every message of a subscription to a function: `client.subscribe(subject, future=MessageSink(take))`.

    nats-py hands messages to a future at once, to a callback by way of a queue and a task. What waits for the CPU in front of every
    message is worth leaving out; all else uses callbacks. The function must not block, and nothing bounds how much it is given.
    """

    def __init__(self, take: Callable[[Msg], None]) -> None:
        super().__init__()
        self._take = take

    def set_result(self, message: Msg) -> None:
        """Pass a message on."""
        self._take(message)


@asynccontextmanager
async def taking(client: Client, subject: str, take: Callable[[Msg], None]) -> AsyncIterator[None]:
    """Give every message on a subject to a function while the block runs."""
    subscription = await client.subscribe(subject, future=MessageSink(take))
    try:
        yield
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()
