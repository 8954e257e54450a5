"""What is open and what waits, as group setup tells Prometheus."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from prometheus_client import REGISTRY

from ioa.adapters.nats.streams.stream_stats import NatsStreamStats
from ioa.errors import UnavailableError
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import AsyncTaskAssignment, TaskSpec
from ioa.protocol.standing import QueueStanding, StreamStanding
from ioa.runtime.open_work_metrics import OpenWorkMetrics
from tests.unit.runtime.plane import ADA, BOB, Plane


class FixedStandings(NatsStreamStats):
    """Streams that stand as they are told to."""

    def __init__(self) -> None:
        self.streams: Sequence[StreamStanding] = ()
        self.is_there = True

    async def read(self) -> Sequence[StreamStanding]:
        """How things stand."""
        if not self.is_there:
            raise UnavailableError("JetStream does not answer.")
        return self.streams


def value(name: str, **labels: str) -> float | None:
    """What a gauge shows."""
    return REGISTRY.get_sample_value(name, labels)


async def test_groups_and_tasks_are_counted_by_where_they_stand() -> None:
    """An open group with a task shows in its phase, and no more once it has ended."""
    plane, standings = Plane(), FixedStandings()
    metrics = OpenWorkMetrics(plane.log, standings, plane.open_groups)
    await metrics.measure()
    seen = [(value("ioa_groups", phase="handing"), value("ioa_tasks", state="running"))]
    await plane.open(ADA, BOB)
    task = TaskSpec(task_id=TaskId("t1-1"), assignee=BOB, task_desc="Count the lines.")
    await plane.says(ADA, AsyncTaskAssignment(tasks=(task,)))
    await metrics.measure()
    seen.append((value("ioa_groups", phase="handing"), value("ioa_tasks", state="running")))
    plane.clock.advance_to((await plane.state()).limits.deadline)
    await plane.fire_due()
    await metrics.measure()
    seen.append((value("ioa_groups", phase="handing"), value("ioa_tasks", state="running")))
    assert seen == [(0, 0), (1, 1), (0, 0)]


async def test_queues_and_streams_are_shown_as_they_stand() -> None:
    """What waits and what is taken by queue, what is stored by stream; an outage leaves the last figures."""
    plane, standings = Plane(), FixedStandings()
    queue = QueueStanding(name="pool-writers", waiting=3, taken=2)
    standings.streams = [StreamStanding(name="IOA_WORK", messages=5, stored_bytes=700, queues=(queue,), limit_bytes=1_000)]
    metrics = OpenWorkMetrics(plane.log, standings, plane.open_groups)
    await metrics.measure()
    standings.is_there = False
    with pytest.raises(UnavailableError):
        await metrics.measure()
    labels = {"stream": "IOA_WORK", "consumer": "pool-writers"}
    assert (value("ioa_queue_waiting", **labels), value("ioa_queue_taken", **labels)) == (3, 2)
    assert (value("ioa_stream_messages", stream="IOA_WORK"), value("ioa_stream_bytes", stream="IOA_WORK")) == (5, 700)
    assert value("ioa_stream_limit_bytes", stream="IOA_WORK") == 1_000
