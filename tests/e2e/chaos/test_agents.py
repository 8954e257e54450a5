"""A process of agents dies at every step of their work: it carries on from its memory, or from the log when that is gone."""

from __future__ import annotations

import signal

import pytest

from ioa.telemetry.fault_points import POINTS
from tests.rig.fleet import Fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_POINTS = tuple(name for name in POINTS if name.startswith("agent."))


@pytest.mark.parametrize("memory", ["its own", "an empty one", "a backup"])
async def test_agents_die_at_every_step_of_their_work(fleet: Fleet, memory: str) -> None:
    """Killed while it thinks, before and after it speaks, around a task's start and its end; then started again."""
    died = []
    for number, point in enumerate(_POINTS):
        if memory == "a backup":
            await fleet.back_up("worker-0")
        died.append(await fleet.die_under_load("worker-0", f"{point}:{number + 1}", seed=30 + number, goals=5))
        if memory == "an empty one":
            await fleet.wipe("worker-0")
        if memory == "a backup":
            await fleet.restore("worker-0")
        await fleet.start("worker-0")
    evidence = await fleet.evidence()
    assert (died, check(evidence)) == ([-signal.SIGKILL] * len(_POINTS), [])
