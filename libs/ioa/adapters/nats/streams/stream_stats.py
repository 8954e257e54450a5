"""Figures of streams, queues and the store: for Prometheus, for `ioa doctor`, and for the limit above which goals are rejected."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from nats.aio.client import Client
from nats.js.api import ConsumerInfo, DiscardPolicy, StreamInfo
from nats.js.errors import APIError
from prometheus_client import Gauge
from pydantic_core import from_json, to_json

from ioa.adapters.nats.streams.topology import CONSUMERS, DEAD, GOALS, LOG, TIMERS, WORK, Shares
from ioa.adapters.nats.wire.translated_errors import unavailable_unless_answered
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.protocol.standing import QueueStanding, StoreStanding, StreamStanding

_QUEUES = (GOALS, WORK, TIMERS)
_MAX_QUEUES = 500
"""Maximum queues of a stream, those with most waiting messages, so that a `StoreStanding` fits into a message."""
_PAGE = 256
"""Consumers in one reply of nats-server."""
_TIMEOUT_SECONDS = 10.0
_MEASURE_SECONDS = 15.0
_CLOSED_BYTES = 1
"""`max_bytes` of the stream of goals while it accepts none: JetStream stores no message of this size."""

_log = structlog.get_logger(__name__)

waiting = Gauge("ioa_queue_waiting", "Messages of a queue that are not delivered", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that are delivered and not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages in a stream", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes in a stream", ["stream"])
limit = Gauge("ioa_stream_limit_bytes", "Maximum bytes of a stream; absent for streams without a limit", ["stream"])


async def stream_names(client: Client) -> set[str]:
    """Return the names of all streams.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    return {*((await _ask(client, "STREAM.NAMES")).get("streams") or ())}


async def subject_counts(client: Client, stream: str, pattern: str) -> Mapping[str, int]:
    """Return the subjects of a stream that match a pattern, with the number of messages of each.

    nats-server lists 100,000 subjects in one reply. Subjects that are removed between two replies can hide others.

    Raises:
        UnavailableError: The stream does not answer.
    """
    found = dict[str, int]()
    while True:
        answer = await _ask(client, f"STREAM.INFO.{stream}", subjects_filter=pattern, offset=len(found))
        page: Mapping[str, int] = answer["state"].get("subjects") or {}
        found |= page
        if not page or len(found) >= answer.get("total", 0):
            return found


async def read_standing(client: Client) -> StoreStanding:
    """Read all streams and queues, missing consumers, and the number of dead letters.

    Raises:
        UnavailableError: JetStream does not answer.
    """
    with unavailable_unless_answered("JetStream"):
        account = await client.jetstream().account_info()
    listed = (await _ask(client, "STREAM.LIST"))["streams"] or ()
    streams = [await _describe(client, StreamInfo.from_response(stream)) for stream in listed]
    names = {stream.name for stream in streams}
    present = {(stream.name, queue.name) for stream in streams for queue in stream.queues}
    expected = [(stream, name) for stream, name, _ in CONSUMERS if stream in names.intersection(_QUEUES)]
    letters = await subject_counts(client, DEAD, subjects.ANY_DEAD) if DEAD in names else {}
    return StoreStanding(
        stored_bytes=account.storage,
        limit_bytes=max(0, account.limits.max_storage or 0),
        streams=tuple(stream.model_copy(update={"queues": stream.queues[:_MAX_QUEUES]}) for stream in streams),
        missing=tuple(f"{stream}/{name}" for stream, name in expected if (stream, name) not in present),
        dead_letters={subject.rpartition(".")[2]: number for subject, number in letters.items()},
    )


async def follow_metrics(client: Client) -> None:
    """Measure periodically until cancelled. While JetStream does not answer, the gauges do not change."""
    while True:
        try:
            set_gauges((await read_standing(client)).streams)
        except UnavailableError as error:
            _log.warning("measurement_delayed", error=error.message)
        await asyncio.sleep(_MEASURE_SECONDS)


def set_gauges(streams: Sequence[StreamStanding]) -> None:
    """Set the gauges of streams and their queues."""
    waiting.clear()
    taken.clear()
    for stream in streams:
        messages.labels(stream.name).set(stream.messages)
        size.labels(stream.name).set(stream.stored_bytes)
        if stream.limit_bytes:
            limit.labels(stream.name).set(stream.limit_bytes)
        for queue in stream.queues:
            waiting.labels(stream.name, queue.name).set(queue.waiting)
            taken.labels(stream.name, queue.name).set(queue.taken)


class NatsStorage:
    """The store of a connection's account. Without `shares` it has no limit. `replicas` is the number of copies of each stream."""

    def __init__(self, client: Client, shares: Shares | None, replicas: int) -> None:
        self._js = client.jetstream()
        self._shares = shares
        self._replicas = replicas

    async def used(self) -> float:
        """Return the used part of the account or of the log's share, whichever is larger."""
        if self._shares is None:
            return 0.0
        with unavailable_unless_answered("JetStream"):
            stored = (await self._js.account_info()).storage / self._replicas
            logs = (await self._js.stream_info(LOG)).state.bytes
        return max(stored / self._shares.store, logs / self._shares.by_stream()[LOG])

    async def accept_goals(self, accept: bool) -> None:
        """Set `max_bytes` of the stream of goals."""
        if self._shares is None:
            return
        max_bytes = self._shares.by_stream()[GOALS] if accept else _CLOSED_BYTES
        with unavailable_unless_answered("The stream of goals"):
            config = (await self._js.stream_info(GOALS)).config
            if config.max_bytes != max_bytes:
                await self._js.update_stream(config.evolve(max_bytes=max_bytes))


async def _ask(client: Client, request: str, **content: object) -> dict[str, Any]:
    with unavailable_unless_answered("JetStream"):
        message = await client.request(f"$JS.API.{request}", to_json(content), timeout=_TIMEOUT_SECONDS)
        answer: dict[str, Any] = from_json(message.data)
        if "error" in answer:
            raise APIError.from_error(answer["error"])
    return answer


async def _describe(client: Client, stream: StreamInfo) -> StreamStanding:
    """Describe a stream and its queues. A stream that removes its oldest messages has no limit."""
    found, name = list[ConsumerInfo](), str(stream.config.name)
    is_complete = name not in _QUEUES
    while not is_complete:
        with unavailable_unless_answered("JetStream"):
            page = await client.jetstream().consumers_info(name, offset=len(found))
        found += page
        is_complete = len(page) < _PAGE
    return StreamStanding(
        name=name,
        messages=stream.state.messages,
        stored_bytes=stream.state.bytes,
        limit_bytes=max(0, stream.config.max_bytes or 0) if stream.config.discard is DiscardPolicy.NEW else 0,
        schedules=bool(stream.config.allow_msg_schedules),
        queues=tuple(sorted(map(_describe_queue, found), key=lambda one: (-one.waiting, -one.taken))),
    )


def _describe_queue(consumer: ConsumerInfo) -> QueueStanding:
    return QueueStanding(
        name=consumer.name,
        waiting=consumer.num_pending or 0,
        taken=consumer.num_ack_pending or 0,
        readers=consumer.num_waiting or 0,
    )
