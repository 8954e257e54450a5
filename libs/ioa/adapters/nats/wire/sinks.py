"""Subscriptions that pass messages to a function as soon as they are parsed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

_log = structlog.get_logger(__name__)


class MessageSink(asyncio.Future[Msg]):
    """Pass each message of a subscription to a function that does not block: `client.subscribe(subject, future=MessageSink(take))`.

    nats-py sets a message on a future immediately, but passes it to a callback through a queue and a task.
    """

    def __init__(self, take: Callable[[Msg], None]) -> None:
        super().__init__()
        self._take = take

    def set_result(self, message: Msg) -> None:
        """Pass a message to the function."""
        try:
            self._take(message)
        except Exception:  # noqa: BLE001 - an exception would end the reading of all messages
            _log.exception("message_not_taken")


@asynccontextmanager
async def taking(client: Client, subject: str, take: Callable[[Msg], None]) -> AsyncIterator[None]:
    """Pass every message on a subject to a function while the block runs."""
    subscription = await client.subscribe(subject, future=MessageSink(take))
    try:
        yield
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()
