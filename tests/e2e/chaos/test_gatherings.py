"""Routers die while members answer side by side, or while somebody is to decide: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import pytest

from ioa.adapters.nats.log import NatsGroupLog
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.protocol.messages import Phase
from ioa.testing.log_checker import check
from tests.rig.deadline import eventually
from tests.rig.fleet import ROUTERS, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_TRIES = 5
"""How often routers are killed until a group is met in a phase: it may be over before they are dead."""


async def _phases(fleet: Fleet) -> list[Phase]:
    """Where the groups of all goals stand."""
    log = NatsGroupLog(fleet.client)
    heads = [await log.last(GoalName(LOCAL, goal_id).comm_id) for goal_id in fleet.goals]
    return [head.entry.state.phase for head in heads if head is not None]


async def _are_killed_in(fleet: Fleet, phase: Phase) -> bool:
    """Kill all routers when a group is in a phase, and start them again; whether one was in it without any router."""
    await fleet.publish(GoalId(f"{phase}-{len(fleet.goals)}"), "led")
    await eventually(lambda: _phases(fleet), lambda phases: phase in phases)
    for router in ROUTERS:
        await fleet.kill(router)
    met = phase in await _phases(fleet)
    await fleet.start(*ROUTERS)
    return met


@pytest.mark.parametrize("phase", [Phase.GATHERING, Phase.DECIDING])
async def test_all_routers_die_within(fleet: Fleet, phase: Phase) -> None:
    """A group goes on where it stood: each seat answers once, and who is asked decides once."""
    for _ in range(_TRIES):
        if met := await _are_killed_in(fleet, phase):
            break
    evidence = await fleet.evidence()
    assert met
    assert (check(evidence), {result.reason for result in evidence.results}) == ([], {Reason.CONCLUDED})
