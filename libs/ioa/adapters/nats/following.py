"""Following one subject of a stream: what is stored, then what comes, across outages.

Not by a consumer: the server delivers for who created one, to any subject that was asked for, so that users must not create any.
A plain subscription tells that something comes; it is read from the stream, whose order and memory count.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.errors import NotFoundError

from ioa.adapters.nats.connection import at_renewal
from ioa.adapters.nats.reading import DirectReads
from ioa.adapters.nats.translated_errors import unavailable_unless_answered
from ioa.adapters.nats.turn_about import looking_now_and_then
from ioa.attention import Attention
from ioa.errors import UnavailableError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class FollowedMessage:
    """A message of the stream and its sequence there."""

    seq: int
    data: bytes


async def follow_subject(client: Client, stream: str, subject: str, *, after: int = 0) -> AsyncGenerator[FollowedMessage, None]:
    """Yield the stored messages of a subject behind a sequence and then each new one, once each and in order, for ever."""
    attention = Attention()
    async with _hearing(client, subject, attention.hint):
        with at_renewal(client, attention.look), looking_now_and_then(client, attention.look):
            last = after
            while True:
                found = await _next(client, stream, subject, last)
                if found is not None:
                    last = found.seq
                    attention.hint()
                    yield found
                else:
                    await attention.wait()


class _Ear:
    def __init__(self) -> None:
        self.hints = list[Callable[[], None]]()
        self.subscribing = asyncio.Lock()
        self.subscription: Subscription | None = None

    async def hear(self, _message: Msg) -> None:
        for hint in self.hints:
            hint()


_ears: WeakKeyDictionary[Client, dict[str, _Ear]] = WeakKeyDictionary()


@asynccontextmanager
async def _hearing(client: Client, subject: str, hint: Callable[[], None]) -> AsyncIterator[None]:
    """Be told that something has come on a subject. However many are, the server sends it once: it may be large."""
    ears = _ears.setdefault(client, {})
    ear = ears.setdefault(subject, _Ear())
    ear.hints.append(hint)
    try:
        async with ear.subscribing:
            if ear.subscription is None:
                ear.subscription = await client.subscribe(subject, cb=ear.hear)
        yield
    finally:
        ear.hints.remove(hint)
        if not ear.hints:
            del ears[subject]
            if ear.subscription is not None and not client.is_closed:
                await ear.subscription.unsubscribe()


async def _next(client: Client, stream: str, subject: str, after: int) -> FollowedMessage | None:
    try:
        with unavailable_unless_answered(f"The stream {stream}"):
            try:
                message = await DirectReads(client).get_msg(stream, seq=after + 1, subject=subject, next=True)
            except NotFoundError:
                return None
    except UnavailableError as error:
        _log.warning("stream_out_of_reach", stream=stream, error=error.message)
        return None
    return FollowedMessage(message.seq or 0, message.data or b"")
