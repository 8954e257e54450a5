"""Gauges of streams and queues, which group setup measures periodically."""

from __future__ import annotations

import asyncio

import structlog
from prometheus_client import Gauge

from ioa.adapters.nats.streams.stream_stats import NatsStreamStats
from ioa.errors import UnavailableError

_EVERY_SECONDS = 15.0

waiting = Gauge("ioa_queue_waiting", "Messages of a queue that are not delivered", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that are delivered and not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages in a stream", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes in a stream", ["stream"])
limit = Gauge("ioa_stream_limit_bytes", "Maximum bytes of a stream; absent for streams without a limit", ["stream"])

_log = structlog.get_logger(__name__)


async def follow_queues(streams: NatsStreamStats) -> None:
    """Measure periodically until cancelled."""
    while True:
        try:
            await measure_queues(streams)
        except UnavailableError as error:
            _log.warning("measurement_delayed", error=error.message)
        await asyncio.sleep(_EVERY_SECONDS)


async def measure_queues(streams: NatsStreamStats) -> None:
    """Measure once.

    Raises:
        UnavailableError: JetStream does not answer; the gauges do not change.
    """
    for stream in await streams.read():
        messages.labels(stream.name).set(stream.messages)
        size.labels(stream.name).set(stream.stored_bytes)
        if stream.limit_bytes:
            limit.labels(stream.name).set(stream.limit_bytes)
        for queue in stream.queues:
            waiting.labels(stream.name, queue.name).set(queue.waiting)
            taken.labels(stream.name, queue.name).set(queue.taken)
