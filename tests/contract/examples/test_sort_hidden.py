"""Robots that see different panels sort cubes by plain sentences, in a whole system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cubes import GOAL, REACH, World, plan
from ioa.group.events import RepetitionRefused
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId
from ioa_testkit import System
from sort_hidden import robot, table


def steps(seed: int) -> int:
    """Return the number of actions of a plan with full knowledge."""
    world, taken = World.reset(seed), 0
    while not world.done:
        world, taken = world.act(plan(dict(world.places))), taken + 1
    return taken


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_robots_sort_the_cubes_in_the_fewest_actions(ioa_system: System, tmp_path: Path, seed: int) -> None:
    """No message is rejected as a repetition."""
    world = tmp_path / "world.json"
    world.write_text(json.dumps({"seed": seed}))
    order = GoalOrder(goal=GOAL, agent=AgentId("alice"), max_turns=200)
    goal = await ioa_system.run(order, agents=[table, *map(robot, REACH)], files=[world])
    assert (goal.succeeded, goal.content) == (True, f"The cubes are sorted, by {steps(seed)} actions."), goal.transcript
    assert not any(isinstance(stored.entry.event, RepetitionRefused) for stored in goal.log)
