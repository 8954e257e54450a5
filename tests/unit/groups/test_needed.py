"""Finding whom teams of tasks need: who shares with whom, and what a launch counts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ioa.errors import RateLimitedError, UnavailableError
from ioa.group.state import ParentTask
from ioa.protocol.ids import AgentId, GoalId, GoalName, TaskId, UserId
from ioa.protocol.search import Hit, NeedHits, Search, SearchResult
from ioa.protocol.team import team_of
from ioa.testing.manual_clock import ManualClock
from ioa_groups.needed import NeededAgents, TeamOfTask
from tests.rig.deadline import eventually
from tests.unit.group.scenario import card

SOON = timedelta(seconds=30)
ADA, BOB, EVE = AgentId("ada"), AgentId("bob"), AgentId("eve")


class Shown:
    """A discovery that finds one agent for everything, as soon as it may. False in this: it looks at nothing."""

    def __init__(self) -> None:
        self.searches: list[tuple[str, int]] = []
        """By whom, and for how many needs."""
        self.late: set[str] = set()
        self.may = asyncio.Event()
        self.may.set()

    async def search(self, search: Search) -> SearchResult:
        """Find it."""
        self.searches.append((str(search.by), len(search.needs)))
        await self.may.wait()
        if search.by in self.late:
            raise UnavailableError("Discovery does not answer.")
        hits = (Hit(card=card("any"), score=0.9, similarity=0.9),)
        return SearchResult(by_need=tuple(NeedHits(need=need, hits=hits) for need in search.needs), merged=hits)


class World:
    """A group setup's searches, by a clock that is moved."""

    def __init__(self) -> None:
        self.clock, self.discovery = ManualClock(), Shown()
        self.needed = NeededAgents(self.discovery, self.clock, lambda: self.clock.now().timestamp())

    async def cast(self, agent: AgentId, goal: str, needs: int, user: str = "val") -> int:
        """Find whom an agent's team needs, and say how many that were."""
        name = GoalName(UserId(user), GoalId(goal))
        roles: dict[str, Any] = {"chair": "any", **{f"r{number}": {"need": f"part {number}"} for number in range(needs)}}
        team = team_of({"team": "t", "roles": roles, "nodes": [{"name": "talk", "roles": list(roles)}]})
        return len(await self.needed.cast(TeamOfTask(team, name, ParentTask(comm_id=name.comm_id, task_id=TaskId("t1-1")), agent)))

    async def put_off(self, agent: AgentId, goal: str, needs: int) -> timedelta | None:
        """Say in how long an agent is to come back; None if it was answered."""
        try:
            await self.cast(agent, goal, needs)
        except RateLimitedError as refused:
            return refused.retry_after
        return None


async def test_who_has_too_much_found_in_one_goal_has_nobody_else_wait() -> None:
    """Neither the user's other goals, nor another agent in the same goal, nor itself in another one."""
    world = World()
    while await world.put_off(EVE, "hers", 4) is None:
        pass
    assert [await world.put_off(*who, 63) for who in ((BOB, "other"), (BOB, "hers"), (EVE, "another"))] == [None] * 3
    assert [one.caller for one in world.needed.slowed()] == ["eve in val/hers"]


async def test_small_launches_without_end_starve_no_large_one() -> None:
    """Who asks ten times a second for little takes all that comes back of its own, and nothing of another's."""
    world, answered = World(), list[timedelta | None]()
    for moment in range(100):
        await world.put_off(EVE, "hers", 4)
        if moment % 40 == 39:
            answered.append(await world.put_off(BOB, "other", 63))
        world.clock.advance(timedelta(seconds=0.1))
    assert answered == [None, None]


async def test_a_late_search_puts_nobody_else_off() -> None:
    """Who asked for it waits, in that goal; nobody else does in whose name the same user's teams are found."""
    world = World()
    world.discovery.late.add(EVE)
    with pytest.raises(UnavailableError):
        await world.cast(EVE, "hers", 4)
    assert [await world.put_off(*who, 4) for who in ((EVE, "hers"), (BOB, "other"), (BOB, "hers"))] == [
        timedelta(seconds=5),
        None,
        None,
    ]


async def test_goals_of_a_user_take_turns() -> None:
    """However many launches of one goal wait, by however many agents, one of another goal waits for one of them."""
    world, many = World(), [AgentId(f"e{number}") for number in range(20)]
    world.discovery.may.clear()
    async with asyncio.TaskGroup() as group:
        for agent in many:
            group.create_task(world.cast(agent, "hers", 1))
        await eventually(lambda: len(world.discovery.searches) == 1, within=SOON)
        group.create_task(world.cast(BOB, "other", 1))
        world.discovery.may.set()
    assert [by for by, _ in world.discovery.searches].index(BOB) == 1


async def test_a_launch_counts_once_for_all_its_needs() -> None:
    """It is refused before its first search or not at all, and is told when there is room for all of it."""
    world = World()
    assert await world.cast(BOB, "goal", 63) == 63
    again = await world.put_off(BOB, "goal", 63)
    assert (world.discovery.searches, again) == ([("bob", 32), ("bob", 31)], timedelta(seconds=3.2))
    world.clock.advance(again or timedelta())
    assert await world.cast(BOB, "goal", 63) == 63


async def test_launches_that_come_back_when_they_are_told_to_take_what_the_rate_takes() -> None:
    """Eight of one agent at once, of 63 needs each: 256 searches, of which 40 go at once and then ten a second."""
    world, began = World(), World().clock.now()
    due: Sequence[timedelta] = [timedelta()] * 8
    tries = 0
    while due and tries < 100:
        first, *rest = sorted(due)
        world.clock.advance_to(began + first)
        again, tries = await world.put_off(BOB, "goal", 63), tries + 1
        due = rest if again is None else [*rest, first + again]
    took = (world.clock.now() - began).total_seconds()
    assert (21.6 <= took <= 26, tries <= 40, sum(needs for _, needs in world.discovery.searches)) == (True, True, 8 * 63)
