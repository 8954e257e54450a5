"""A goal is one goal however often it is published; another goal under its id is a conflict, and is told."""

from __future__ import annotations

import asyncio

import pytest

from ioa.adapters.nats.streams.topology import DEAD
from ioa.protocol import subjects
from ioa.protocol.ids import LOCAL, GoalId
from tests.rig.deadline import eventually
from tests.rig.fleet import Fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine


async def _letters(fleet: Fleet) -> int:
    return (await fleet.client.jetstream().stream_info(DEAD)).state.messages


async def test_a_goal_that_is_published_again_is_the_same_goal(fleet: Fleet) -> None:
    """Five times at once, and once more when it has ended: one result. Another text under its id is a dead letter."""
    twin = GoalId("twin")
    await asyncio.gather(*(fleet.publish(twin, "mixed") for _ in range(5)))
    first = await fleet.evidence()
    await fleet.publish(twin, "mixed")
    await fleet.client.jetstream().publish(subjects.goal_of(LOCAL), b'{"goal": "load talk other", "goal_id": "twin"}')
    await eventually(lambda: _letters(fleet), (1).__le__)
    letter = await fleet.client.jetstream().get_last_msg(DEAD, subjects.dead("conflict"))
    after = await fleet.evidence()
    assert (check(first), check(after), await _letters(fleet), after.results) == ([], [], 1, first.results)
    assert "taken by another goal" in (letter.headers or {})["Ioa-Reason"]
