"""Follows a key-value bucket: a snapshot, then each change with its time of storage, across reconnects and server restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
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

from ioa.adapters.nats.streams.follow import ordered
from ioa.adapters.nats.wire.renewal import UntilRenewal, until_renewal
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import IoaError, UnavailableError
from ioa.protocol.codec import decode
from ioa.protocol.model import Model

_RETRY_SECONDS = 1.0
_QUIET_SECONDS = 5.0
"""Time without a change after which the server is asked whether the consumer exists."""

_log = structlog.get_logger(__name__)

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Change:
    """A key was set, or removed (`value` is None). `at` is the time of storage, by the server's clock."""

    key: str
    value: bytes | None
    at: datetime


@dataclass(frozen=True)
class Snapshot:
    """The last change of every key, after each interruption."""

    changes: dict[str, Change]

    @property
    def values(self) -> dict[str, bytes]:
        """The present keys and values."""
        return {key: change.value for key, change in self.changes.items() if change.value is not None}


async def follow(client: Client, bucket: str) -> AsyncGenerator[Snapshot | Change, None]:
    """Yield the bucket's snapshot and then its changes, until cancelled; a new snapshot after each interruption."""
    newest = ConsumerConfig(deliver_policy=DeliverPolicy.LAST_PER_SUBJECT)
    while True:
        try:
            with until_renewal(client) as waits:
                async with ordered(client, f"The bucket {bucket}", f"KV_{bucket}", f"$KV.{bucket}.>", newest) as subscription:
                    yield await _snapshot(client, bucket, waits, subscription)
                    while True:
                        message = await waits.next(partial(_next, subscription))
                        if message is not None:
                            yield _change(message)
        except UnavailableError as error:
            _log.warning("bucket_unavailable", bucket=bucket, error=error.message)
            await asyncio.sleep(_RETRY_SECONDS)


def read_value(bucket: str, key: str, kind: type[M], value: bytes) -> M | None:
    """Decode a value of a followed bucket; None, with a line in the log, if it cannot be decoded."""
    try:
        return decode(kind, value)
    except IoaError as error:
        _log.error("bucket_value_unreadable", bucket=bucket, key=key, error=error.message)
        return None


async def _snapshot(client: Client, bucket: str, waits: UntilRenewal, subscription: JetStreamContext.PushSubscription) -> Snapshot:
    """Read every key once, at least as many keys as the stream's leader counts: the replica that the consumer reads may lag.

    Raises:
        UnavailableError: The replica lacks keys.
    """

    async def count_keys() -> int:
        with unavailable_unless_answered(f"The bucket {bucket}"):
            return (await client.jetstream().stream_info(f"KV_{bucket}")).state.messages  # one for each key, also if removed

    changes: dict[str, Change] = {}
    has_sent_all = await _has_sent_all(subscription, before_any=True)
    while not has_sent_all or await count_keys() > len(changes):
        message = await waits.next(partial(_next, subscription))
        if message is None and has_sent_all:
            raise UnavailableError(f"The replica of the bucket {bucket} that was read lacks keys: it has not caught up.")
        if message is not None:
            change = _change(message)
            changes[change.key] = change
        has_sent_all = message is None or not message.metadata.num_pending
    return Snapshot(changes)


def _change(message: Msg) -> Change:
    """Return the change in a message. A removal has a header of the client (NATS ADR-8) or of the server (ADR-43)."""
    headers = message.headers or {}
    is_removed = headers.get(KV_OP) in (KV_DEL, KV_PURGE) or KV_MARKER_REASON in headers
    key = message.subject.split(".", 2)[2]
    return Change(key, None if is_removed else message.data, message.metadata.timestamp)


async def _next(subscription: JetStreamContext.PushSubscription) -> Msg | None:
    """Wait for the next message; return None when all stored messages have arrived.

    After some time without a message, the server is asked whether the consumer exists and has more to send: the key of the last
    message can be removed, and a consumer ends with its node without a report.

    Raises:
        TimeoutError: No message arrives, and there are more.
        UnavailableError: The consumer does not exist.
    """
    try:
        return await subscription.next_msg(timeout=_QUIET_SECONDS)
    except nats.errors.TimeoutError:
        if not await _has_sent_all(subscription):
            raise
        return None


async def _has_sent_all(subscription: JetStreamContext.PushSubscription, *, before_any: bool = False) -> bool:
    """Whether the server has sent all messages, and with `before_any` also whether there were none."""
    with unavailable_unless_answered("The consumer of a bucket"):
        info = await subscription.consumer_info()
    return not info.num_pending and not (before_any and info.delivered and info.delivered.consumer_seq)
