"""Gauges of streams and queues."""

from __future__ import annotations

from prometheus_client import REGISTRY

from ioa.adapters.nats.streams.stream_stats import set_gauges
from ioa.protocol.operation.status import QueueStanding, StreamStanding


def _value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_gauges_set_gauges_and_streams() -> None:
    """Waiting and taken messages by queue, stored messages by stream."""
    queue = QueueStanding(name="pool-writers", waiting=3, taken=2)
    set_gauges([StreamStanding(name="IOA_WORK", messages=5, stored_bytes=700, queues=(queue,), limit_bytes=1_000)])
    labels = {"stream": "IOA_WORK", "consumer": "pool-writers"}
    assert (_value("ioa_queue_waiting", **labels), _value("ioa_queue_taken", **labels)) == (3, 2)
    assert (_value("ioa_stream_messages", stream="IOA_WORK"), _value("ioa_stream_bytes", stream="IOA_WORK")) == (5, 700)
    assert _value("ioa_stream_limit_bytes", stream="IOA_WORK") == 1_000
