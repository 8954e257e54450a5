"""Gauges of streams and queues."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prometheus_client import REGISTRY

from ioa.adapters.nats.streams.stream_stats import NatsStreamStats
from ioa.errors import UnavailableError
from ioa.protocol.standing import QueueStanding, StreamStanding
from ioa.runtime.queue_metrics import measure_queues


class _FixedStats(NatsStreamStats):
    """Streams with a fixed state."""

    def __init__(self) -> None:
        self.streams: Sequence[StreamStanding] = ()
        self.is_available = True

    async def read(self) -> Sequence[StreamStanding]:
        if not self.is_available:
            raise UnavailableError("JetStream does not answer.")
        return self.streams


def _value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


async def test_gauges_of_queues_and_streams_keep_their_values_during_an_outage() -> None:
    """Waiting and taken messages by queue, stored messages by stream."""
    stats, queue = _FixedStats(), QueueStanding(name="pool-writers", waiting=3, taken=2)
    stats.streams = [StreamStanding(name="IOA_WORK", messages=5, stored_bytes=700, queues=(queue,), limit_bytes=1_000)]
    await measure_queues(stats)
    stats.is_available = False
    with pytest.raises(UnavailableError):
        await measure_queues(stats)
    labels = {"stream": "IOA_WORK", "consumer": "pool-writers"}
    assert (_value("ioa_queue_waiting", **labels), _value("ioa_queue_taken", **labels)) == (3, 2)
    assert (_value("ioa_stream_messages", stream="IOA_WORK"), _value("ioa_stream_bytes", stream="IOA_WORK")) == (5, 700)
    assert _value("ioa_stream_limit_bytes", stream="IOA_WORK") == 1_000
