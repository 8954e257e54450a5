"""Gauges of streams and queues, which group setup measures periodically."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from nats.aio.client import Client
from prometheus_client import Gauge

from ioa.adapters.nats.streams.stream_stats import read_streams
from ioa.errors import UnavailableError
from ioa.protocol.standing import StreamStanding

_EVERY_SECONDS = 15.0

waiting = Gauge("ioa_queue_waiting", "Messages of a queue that are not delivered", ["stream", "consumer"])
taken = Gauge("ioa_queue_taken", "Messages of a queue that are delivered and not acknowledged", ["stream", "consumer"])
messages = Gauge("ioa_stream_messages", "Messages in a stream", ["stream"])
size = Gauge("ioa_stream_bytes", "Bytes in a stream", ["stream"])
limit = Gauge("ioa_stream_limit_bytes", "Maximum bytes of a stream; absent for streams without a limit", ["stream"])

_log = structlog.get_logger(__name__)


async def follow_queues(client: Client) -> None:
    """Measure periodically until cancelled. While JetStream does not answer, the gauges do not change."""
    while True:
        try:
            show_queues(await read_streams(client))
        except UnavailableError as error:
            _log.warning("measurement_delayed", error=error.message)
        await asyncio.sleep(_EVERY_SECONDS)


def show_queues(streams: Sequence[StreamStanding]) -> None:
    """Set the gauges."""
    for stream in streams:
        messages.labels(stream.name).set(stream.messages)
        size.labels(stream.name).set(stream.stored_bytes)
        if stream.limit_bytes:
            limit.labels(stream.name).set(stream.limit_bytes)
        for queue in stream.queues:
            waiting.labels(stream.name, queue.name).set(queue.waiting)
            taken.labels(stream.name, queue.name).set(queue.taken)
