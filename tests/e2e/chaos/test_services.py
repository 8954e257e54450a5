"""Services die at every step of a message's life while twenty goals run: nothing is lost, nothing happens twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.protocol.goals import Reason
from tests.e2e.chaos.conftest import QUICK
from tests.rig.fleet import CONTROL_PLANE, DISCOVERY, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_ROUTER_POINTS = ("router.before_append", "router.after_append", "router.between_pushes", "router.before_answer")
_GROUPS_POINTS = ("groups.goal_recorded", "groups.subgroup_recorded", "router.before_append:3", "router.after_append:4")
"""Group setup appends what begins a group, and a nested team in its parent's log, by the code that routers do."""


async def test_a_router_dies_at_every_step_of_a_message(fleet: Fleet) -> None:
    """One of two routers is killed at each fault point, more than once, and started again: every log is whole and legal."""
    died = []
    await fleet.publish_mix(20, seed=1)
    for number, point in enumerate(_ROUTER_POINTS):
        name = f"router-{number % 2}"
        died.append(await fleet.die_under_load(name, f"{point}:{number + 1}", seed=10 + number, goals=5))
        await fleet.start(name)
    evidence = await fleet.evidence()
    led = [result for result in evidence.results if evidence.logs[result.comm_id][-1].entry.state.course is not None]
    assert (died, check(evidence)) == ([-signal.SIGKILL] * 4, [])
    assert Reason.CONCLUDED in {result.reason for result in led}, "no group under a policy was under load"


async def test_every_other_service_dies(fleet: Fleet) -> None:
    """Group setup is killed around each of its writes, then it and the registry altogether: goals end, nobody is forgotten."""
    died = []
    for number, point in enumerate(_GROUPS_POINTS):
        name = f"groups-{number % 2}"
        died.append(await fleet.die_under_load(name, point, seed=20 + number))
        await fleet.start(name)
    for name in ("groups-0", "groups-1", "registry-0", "registry-1"):
        await fleet.kill(name)
    await fleet.start("groups-0", "registry-0")
    await fleet.publish_mix(5, seed=24)
    evidence = await fleet.evidence()
    assert (died, check(evidence)) == ([-signal.SIGKILL] * len(_GROUPS_POINTS), [])


async def test_discovery_dies(nats_server: NatsServer, tmp_path: Path) -> None:
    """Goals whose leaders search first wait while discovery, without a second replica, is killed and comes back."""
    async with open_fleet(nats_server.url, tmp_path / "fleet", {**QUICK, "IOA_LOAD_SEARCHES": "true"}) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS, DISCOVERY)
        await fleet.until_online()
        await fleet.publish_mix(10, seed=80)
        await fleet.kill(DISCOVERY)
        await fleet.publish_mix(5, seed=81)
        await fleet.start(DISCOVERY)
        assert check(await fleet.evidence()) == []
