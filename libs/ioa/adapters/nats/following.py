"""Following one subject of a stream: what is stored, then what comes, across outages.

Not by a consumer: the server delivers for who created one, to any subject that was asked for, so that users must not create any.
A plain subscription tells that something comes; it is read from the stream, whose order and memory count.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from ioa.adapters.nats.connection import at_renewal
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError

_SOON_SECONDS, _LONGEST_SECONDS = 0.005, 1.0
"""When to look again: soon after something was heard, since that comes before it is stored; ever later while all is quiet."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Stored:
    """A message of the stream and its sequence there."""

    seq: int
    data: bytes


async def follow_subject(client: Client, stream: str, subject: str, *, after: int = 0) -> AsyncGenerator[Stored, None]:
    """Yield the stored messages of a subject behind a sequence and then each new one, once each and in order, for ever."""
    news = asyncio.Event()

    async def hear(_message: Msg) -> None:
        news.set()

    subscription = await client.subscribe(subject, cb=hear)
    try:
        with at_renewal(client, news.set):
            last, pause = after, _SOON_SECONDS
            while True:
                found = await _next(client, stream, subject, last)
                if found is not None:
                    last, pause = found.seq, _SOON_SECONDS
                    yield found
                else:
                    pause = _SOON_SECONDS if await _is_heard(news, pause) else min(pause * 2, _LONGEST_SECONDS)
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()


async def _is_heard(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    news.clear()
    return True


async def _next(client: Client, stream: str, subject: str, after: int) -> Stored | None:
    try:
        with unavailable_unless_answered(f"The stream {stream}"):
            try:
                message = await client.jetstream().get_msg(stream, seq=after + 1, subject=subject, next=True)
            except NotFoundError:
                return None
    except UnavailableError as error:
        _log.warning("stream_out_of_reach", stream=stream, error=error.message)
        return None
    return Stored(message.seq or 0, message.data or b"")
