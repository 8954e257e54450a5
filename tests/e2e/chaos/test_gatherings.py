"""Routers die while members answer side by side, a draft is reviewed, or somebody is to decide: nothing is lost or counts twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from nats.aio.msg import Msg

from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.client.seat import people_in
from ioa.group.events import Entry
from ioa.group.state import Asking, GroupState
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName
from ioa.protocol.messages import Phase
from ioa.runtime.process import background
from tests.rig.deadline import eventually
from tests.rig.fleet import ROUTERS, WORKERS, Fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_TRIES = 12
"""How often routers are killed until a group is met where it is wanted: it may be past that before they are dead."""


async def _are_killed_in(fleet: Fleet, kind: str, is_there: Callable[[GroupState], bool], *others: str) -> bool:
    """Kill all routers when a group is somewhere, and others with them, and start them again; whether it was there without them.

    They are stopped first, all at once: while one is waited for to be dead, another one leads the group on.
    """
    goal = GoalName(LOCAL, GoalId(f"{kind}-{len(fleet.goals)}"))
    reached = asyncio.Event()

    async def hear(message: Msg) -> None:
        if not reached.is_set() and is_there(decode(Entry, message.data).state):
            for name in (*ROUTERS, *others):
                fleet.freeze(name)
            reached.set()

    subscription = await fleet.client.subscribe(subjects.log(goal.comm_id), cb=hear)
    await fleet.publish(goal.goal_id, kind)
    await eventually(reached.is_set)
    for name in (*ROUTERS, *others):
        await fleet.kill(name)
    await subscription.unsubscribe()
    head = await NatsGroupLog(fleet.client).last(goal.comm_id)
    await fleet.start(*ROUTERS, *others)
    return head is not None and is_there(head.entry.state)


@pytest.mark.parametrize("phase", [Phase.GATHERING, Phase.DECIDING])
async def test_all_routers_die_within(fleet: Fleet, phase: Phase) -> None:
    """A group goes on where it stood: each seat answers once, and who is asked decides once."""
    for _ in range(_TRIES):
        if met := await _are_killed_in(fleet, "led", lambda state: state.phase is phase):
            break
    evidence = await fleet.evidence()
    assert met
    assert (check(evidence), {result.reason for result in evidence.results}) == ([], {Reason.CONCLUDED})


def _is_reviewed(state: GroupState) -> bool:
    return isinstance(state.stage, Asking) and state.stage.about == "review"


def _is_passed(state: GroupState) -> bool:
    return state.course is not None and state.course.draft is not None and state.course.draft.passed


def _is_watched(state: GroupState) -> bool:
    return isinstance(state.stage, Asking) and state.stage.about == "watch"


def _waits_for_a_person(state: GroupState) -> bool:
    return bool({*people_in(state)} & {*state.floor})


async def test_all_die_within_a_review(fleet: Fleet) -> None:
    """A draft is passed once and said again word for word, watchers are asked first, and a person answers once."""
    met = []
    async with background(fleet.sit(random.Random(1))):
        for is_there in (_is_reviewed, _is_passed, _is_watched, _waits_for_a_person):
            for number in range(_TRIES):
                if await _are_killed_in(fleet, "reviewed", is_there, *WORKERS[: number % 2 + 1]):
                    met.append(is_there)
                    break
        evidence = await fleet.evidence()
    ended = {result.reason for result in evidence.results}
    assert (met, check(evidence)) == ([_is_reviewed, _is_passed, _is_watched, _waits_for_a_person], [])
    assert ended <= {Reason.CONCLUDED, Reason.MAX_TURNS}
