"""Figures of streams and queues, for Prometheus and for `ioa doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from nats.aio.client import Client
from prometheus_client import Gauge

from ioa.adapters.nats.streams.stream import Stream, ask_jetstream
from ioa.adapters.nats.streams.topology import CONSUMERS, DEAD, GOALS, TIMERS, WORK
from ioa.errors import UnavailableError
from ioa.protocol.operation.status import QueueStanding, StoreStanding, StreamStanding

_QUEUES = (GOALS, WORK, TIMERS)
_MAX_QUEUES = 500
"""Maximum queues of a stream, those with most waiting messages, so that a `StoreStanding` fits into a message."""
_PAGE = 256
"""Consumers in one reply of nats-server."""
_MEASURE_SECONDS = 15.0

_log = structlog.get_logger(__name__)

waiting = Gauge("ioa_queue_waiting", "Messages of a queue that are not delivered", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that are delivered and not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages in a stream", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes in a stream", ["stream"])
limit = Gauge("ioa_stream_limit_bytes", "Maximum bytes of a stream; absent for streams without a limit", ["stream"])


async def read_standing(client: Client) -> StoreStanding:
    """Read all streams and queues, missing consumers, and the number of dead letters."""
    account = await ask_jetstream(client, "INFO")
    streams = [await _describe(client, stream) for stream in (await ask_jetstream(client, "STREAM.LIST"))["streams"] or ()]
    names = {stream.name for stream in streams}
    present = {(stream.name, queue.name) for stream in streams for queue in stream.queues}
    expected = [(stream, name) for stream, name, _ in CONSUMERS if stream in names.intersection(_QUEUES)]
    letters = await Stream(client, DEAD).subject_counts() if DEAD in names else {}
    return StoreStanding(
        stored_bytes=account["storage"],
        limit_bytes=max(0, account["limits"].get("max_storage", 0)),
        streams=tuple(stream.model_copy(update={"queues": stream.queues[:_MAX_QUEUES]}) for stream in streams),
        missing=tuple(f"{stream}/{name}" for stream, name in expected if (stream, name) not in present),
        dead_letters={subject.rpartition(".")[2]: number for subject, number in letters.items()},
    )


async def _describe(client: Client, stream: Mapping[str, Any]) -> StreamStanding:
    """Describe a stream and its queues. A stream that removes its oldest messages has no limit."""
    config, state, found = stream["config"], stream["state"], list[QueueStanding]()
    is_complete = config["name"] not in _QUEUES
    while not is_complete:
        page = (await ask_jetstream(client, f"CONSUMER.LIST.{config['name']}", offset=len(found)))["consumers"] or ()
        found += map(_describe_queue, page)
        is_complete = len(page) < _PAGE
    return StreamStanding(
        name=config["name"],
        messages=state["messages"],
        stored_bytes=state["bytes"],
        limit_bytes=max(0, config["max_bytes"]) if config["discard"] == "new" else 0,
        schedules=config.get("allow_msg_schedules", False),
        queues=tuple(sorted(found, key=lambda one: (-one.waiting, -one.taken))),
    )


def _describe_queue(consumer: Mapping[str, Any]) -> QueueStanding:
    return QueueStanding(
        name=consumer["name"], waiting=consumer["num_pending"], taken=consumer["num_ack_pending"], readers=consumer["num_waiting"]
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
