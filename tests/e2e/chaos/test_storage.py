"""An agent's memory or the log cannot be written for a while: work waits, and continues."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.streams.topology import LOG
from tests.rig.deadline import eventually
from tests.rig.fleet import Fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine


async def test_agent_waits_while_its_memory_cannot_be_written(fleet: Fleet) -> None:
    """When the memory can be written again, the tasks are done once."""
    await fleet.publish_mix(10, seed=60)
    fleet.lock_memory("worker-0")
    await fleet.publish_mix(10, seed=61)
    await eventually(lambda: fleet.has_logged("memory cannot be used"))
    fleet.unlock_memory("worker-0")
    assert check(await fleet.evidence()) == []


async def test_the_log_refuses_writes(fleet: Fleet) -> None:
    """The stream of logs has reached its limit; when the limit is raised, everything that waited is written, once."""
    js = fleet.client.jetstream()
    await fleet.publish_mix(10, seed=62)
    info = await js.stream_info(LOG)
    await js.update_stream(info.config.evolve(max_bytes=max(info.state.bytes, 1)))
    await fleet.publish_mix(5, seed=63)
    await eventually(lambda: fleet.has_logged("has no room left"))
    await js.update_stream(info.config.evolve(max_bytes=-1))
    assert check(await fleet.evidence()) == []
