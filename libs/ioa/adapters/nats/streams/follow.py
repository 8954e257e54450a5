"""Follow a stream by an ordered consumer (NATS ADR-17) across reconnects and server restarts, in the control plane only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.kv import KV_DEL, KV_MARKER_REASON, KV_OP, KV_PURGE

from ioa.adapters.nats.streams.stream import Stream
from ioa.adapters.nats.streams.topology import stream_of, subject_of
from ioa.adapters.nats.wire.subscriptions import UntilRenewal, until_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError

_RETRY_SECONDS = 1.0
_QUIET_SECONDS = 5.0
"""Time without a message after which the server is asked whether the consumer exists."""

_log = structlog.get_logger(__name__)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Change:
    """A key was set, or removed (`value` is None). `at` is the time of storage, by the server's clock."""

    key: str
    value: bytes | None
    at: datetime


async def follow_bucket(client: Client, bucket: str) -> AsyncGenerator[tuple[Mapping[str, Change], bool], None]:
    """Yield changes by key until cancelled: first and after each interruption the last change of every key, marked by True."""
    policy = DeliverPolicy.LAST_PER_SUBJECT
    async for changes, is_snapshot in follow(client, stream_of(bucket), subject_of(bucket, ">"), policy, _read_change):
        yield {change.key: change for change in changes}, is_snapshot


async def follow(
    client: Client, stream: str, subject: str, policy: DeliverPolicy, read: Callable[[Msg], Item]
) -> AsyncGenerator[tuple[Sequence[Item], bool], None]:
    """Yield new messages until cancelled: first and after each interruption all stored messages, marked by True.

    `policy` is `ALL` or `LAST_PER_SUBJECT`. `read` decodes a message.
    """
    while True:
        try:
            with until_renewal(client) as waits:
                async with _ordered_consumer(client, stream, subject, policy) as consumer:
                    yield await _read_stored(Stream(client, stream), policy, waits, consumer, read), True
                    while True:
                        message = await waits.next(partial(_next, consumer))
                        if message is not None:
                            yield [read(message)], False
        except UnavailableError as error:
            _log.warning("stream_unavailable", stream=stream, error=error.message)
            await asyncio.sleep(_RETRY_SECONDS)


@asynccontextmanager
async def _ordered_consumer(
    client: Client, stream: str, subject: str, policy: DeliverPolicy
) -> AsyncIterator[JetStreamContext.PushSubscription]:
    opened: JetStreamContext.PushSubscription | None = None
    try:
        with unavailable_unless_answered(f"The stream {stream}"):  # a cancelled task is subscribed when this block raises
            config = ConsumerConfig(deliver_policy=policy)
            opened = await client.jetstream().subscribe(subject, stream=stream, ordered_consumer=True, config=config)
        yield opened
    finally:
        if opened is not None and not client.is_closed:
            with suppress(nats.errors.Error, TimeoutError, OSError):
                await opened.unsubscribe()


async def _read_stored(
    stream: Stream,
    policy: DeliverPolicy,
    waits: UntilRenewal,
    consumer: JetStreamContext.PushSubscription,
    read: Callable[[Msg], Item],
) -> list[Item]:
    """Read at least as many messages as the stream's leader counts: the replica that the consumer reads may lag."""
    found = dict[str | int, Item]()
    has_sent_all = await _has_sent_all(consumer, before_any=True)
    while not has_sent_all or (await stream.info())["state"]["messages"] > len(found):
        message = await waits.next(partial(_next, consumer))
        if message is None and has_sent_all:
            raise UnavailableError(f"The replica of {stream.name} that was read lacks messages: it has not caught up.")
        if message is not None:
            found[message.subject if policy is DeliverPolicy.LAST_PER_SUBJECT else message.metadata.sequence.stream] = read(message)
        has_sent_all = message is None or not message.metadata.num_pending
    return [*found.values()]


async def _next(consumer: JetStreamContext.PushSubscription) -> Msg | None:
    """Wait for the next message; return None when all stored messages have arrived.

    After some time without a message, the server is asked whether the consumer exists and has more to send: the last message can be
    removed, and a consumer ends with its node without a report. If more messages exist, `TimeoutError` is raised.
    """
    try:
        return await consumer.next_msg(timeout=_QUIET_SECONDS)
    except nats.errors.TimeoutError:
        if not await _has_sent_all(consumer):
            raise
        return None


async def _has_sent_all(consumer: JetStreamContext.PushSubscription, *, before_any: bool = False) -> bool:
    """Whether the server has sent all messages, and with `before_any` also whether there were none."""
    with unavailable_unless_answered("The ordered consumer"):
        info = await consumer.consumer_info()
    return not info.num_pending and not (before_any and info.delivered and info.delivered.consumer_seq)


def _read_change(message: Msg) -> Change:
    """Return the change in a message. A removal has a header of the client (NATS ADR-8) or of the server (ADR-43)."""
    headers = message.headers or {}
    is_removed = headers.get(KV_OP) in (KV_DEL, KV_PURGE) or KV_MARKER_REASON in headers
    key = message.subject.split(".", 2)[2]
    return Change(key, None if is_removed else message.data, message.metadata.timestamp)
