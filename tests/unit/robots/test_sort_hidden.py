"""Robots that see different things reach a goal by telling each other, in plain sentences, on a whole system in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.robots.sort_hidden import GOAL, REACH, STARTS, World, plan, robot, table
from ioa.group.events import RepetitionRefused
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import AgentId
from ioa_testkit import FinishedGoal, System


async def sort(system: System, folder: Path, seed: int, *, mute: bool = False) -> FinishedGoal:
    """Have the robots sort the cubes of one seed."""
    world = folder / "world.json"
    world.write_text(json.dumps({"seed": seed}))
    order = GoalOrder(goal=GOAL, agent=AgentId("alice"), max_turns=200)
    async with system.serve(table, *(robot(name, mute=mute) for name in REACH)) as running:
        return await running.run(order, files=[world])


def steps(seed: int) -> int:
    """How many actions a plan takes that sees all."""
    world, taken = World.reset(seed), 0
    while not world.done:
        world, taken = world.act(plan(dict(world.places))), taken + 1
    return taken


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_robots_that_tell_what_they_see_sort_the_cubes(ioa_system: System, tmp_path: Path, seed: int) -> None:
    """In as few actions as if one of them saw all; nothing they say is refused as a repetition."""
    goal = await sort(ioa_system, tmp_path, seed)
    assert (goal.succeeded, goal.content) == (True, f"The cubes are sorted, by {steps(seed)} actions."), goal.transcript
    assert not any(isinstance(stored.entry.event, RepetitionRefused) for stored in goal.log)


async def test_robots_that_tell_nothing_do_not(ioa_system: System, tmp_path: Path) -> None:
    """Nobody sees all cubes, so whoever sorts them without a word was told by the system."""
    seed = next(seed for seed in range(100) if all(World.reset(seed).observe(name).count("cube") < 3 for name in REACH))
    goal = await sort(ioa_system, tmp_path, seed, mute=True)
    assert (goal.succeeded, goal.content) == (False, "The cubes could not be sorted.")


def test_each_world_can_be_sorted() -> None:
    """From wherever its cubes start, in one to seven actions; seeds make different worlds."""
    taken: Sequence[int] = [steps(seed) for seed in range(3)]
    assert all(1 <= one <= 7 for one in taken)
    assert len({World.reset(seed) for seed in range(2_000)}) == len(STARTS) == 134
