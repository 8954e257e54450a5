"""Routers die while members answer side by side, or while somebody is to decide: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.log import NatsGroupLog
from ioa.group.events import Entry
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.protocol.messages import Phase
from ioa.testing.log_checker import check
from tests.rig.deadline import eventually
from tests.rig.fleet import ROUTERS, Fleet

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_TRIES = 12
"""How often routers are killed until a group is met in a phase: it may be over before they are dead."""


async def _are_killed_in(fleet: Fleet, phase: Phase) -> bool:
    """Kill all routers when a group is in a phase, and start them again; whether it was in it without any router."""
    goal = GoalName(LOCAL, GoalId(f"{phase}-{len(fleet.goals)}"))
    reached = asyncio.Event()

    async def hear(message: Msg) -> None:
        if decode(Entry, message.data).state.phase is phase:
            reached.set()

    subscription = await fleet.client.subscribe(subjects.log(goal.comm_id), cb=hear)
    await fleet.publish(goal.goal_id, "led")
    await eventually(reached.is_set)
    for router in ROUTERS:
        await fleet.kill(router)
    await subscription.unsubscribe()
    head = await NatsGroupLog(fleet.client).last(goal.comm_id)
    await fleet.start(*ROUTERS)
    return head is not None and head.entry.state.phase is phase


@pytest.mark.parametrize("phase", [Phase.GATHERING, Phase.DECIDING])
async def test_all_routers_die_within(fleet: Fleet, phase: Phase) -> None:
    """A group goes on where it stood: each seat answers once, and who is asked decides once."""
    for _ in range(_TRIES):
        if met := await _are_killed_in(fleet, phase):
            break
    evidence = await fleet.evidence()
    assert met
    assert (check(evidence), {result.reason for result in evidence.results}) == ([], {Reason.CONCLUDED})
