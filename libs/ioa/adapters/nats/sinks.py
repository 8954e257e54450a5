"""Taking the messages of a subscription as they are read off the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

_log = structlog.get_logger(__name__)


class MessageSink(asyncio.Future[Msg]):
    """Give every message of a subscription to a function: `client.subscribe(subject, future=MessageSink(take))`.

    nats-py hands messages to a future at once, to a callback by way of a queue and a task. What waits for the CPU in front of every
    message is worth leaving out; all else uses callbacks. The function must not block, and nothing bounds how much it is given.

    What the function raises goes no further: nats-py would stop reading from the connection, and whoever listens on it be deaf.
    """

    def __init__(self, take: Callable[[Msg], None]) -> None:
        super().__init__()
        self._take = take

    def set_result(self, message: Msg) -> None:
        """Pass a message on."""
        try:
            self._take(message)
        except Exception:  # noqa: BLE001 - one message's bug must not keep all others of the connection from being read
            _log.exception("message_not_taken")


@asynccontextmanager
async def taking(client: Client, subject: str, take: Callable[[Msg], None]) -> AsyncIterator[None]:
    """Give every message on a subject to a function while the block runs."""
    subscription = await client.subscribe(subject, future=MessageSink(take))
    try:
        yield
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()
