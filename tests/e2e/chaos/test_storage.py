"""Nothing can be written for a while, on an agent's disk or in the log: work waits, and goes on where it was."""

from __future__ import annotations

import sys

import pytest

from ioa.adapters.nats.streams.topology import LOG
from tests.rig.deadline import eventually
from tests.rig.fleet import Fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can change the limits of another process")
async def test_an_agents_disk_is_full(fleet: Fleet) -> None:
    """No file of a worker may grow any more; when it may again, what its agents could not remember is made good."""
    await fleet.publish_mix(10, seed=60)
    fleet.fill_disk("worker-0")
    await fleet.publish_mix(10, seed=61)
    await eventually(lambda: fleet.has_logged("memory cannot be used"))
    fleet.free_disk("worker-0")
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
