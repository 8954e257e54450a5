"""Nested groups of tasks that name a stored team: whose it may be, who is cast in it, and what becomes of it else."""

from __future__ import annotations

from typing import Any

import pytest

from ioa.errors import (
    ForbiddenError,
    InvalidInputError,
)
from ioa.group.requests import LaunchGroup
from ioa.protocol.agents.search import Search, SearchResult
from ioa.protocol.ids import LOCAL, TaskId, UserId
from ioa.protocol.messages import SyncTaskAssignment, TaskSpec
from ioa.protocol.registry import Register
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.teams.stored_teams import PutTeam
from ioa.protocol.teams.team_file import TeamSpec, team_of
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, Plane

T1 = TaskId("t1-1")


def panel(critic: Any = "eve", most: int = 2) -> TeamSpec:
    """A team of two, of whom bob leads."""
    talk = {"name": "talk", "roles": ["chair", "critic"], "max": most}
    return team_of({"team": "panel", "roles": {"chair": "bob", "critic": critic}, "nodes": [talk]})


async def given(team: TeamSpec | None, *, user: UserId = LOCAL, name: str = "panel") -> Plane:
    """A group in which bob has a task that names a team, which a user has put."""
    plane = Plane()
    if team is not None:
        await plane.teams.put(user, PutTeam(team=team))
    await plane.open(ADA, BOB, EVE)
    task = TaskSpec(task_id=T1, assignee=BOB, task_desc="Judge it.", team=name)
    await plane.says(ADA, SyncTaskAssignment(tasks=(task,)))
    return plane


async def test_unauthorised_nested_launch_is_rejected_before_the_search() -> None:
    """Another policy than the goal's, and an owner whose card permits no teams, are rejected."""
    plane, searched = await given(panel(critic={"need": "finds faults"})), list[Search]()

    async def noted(asked: Search) -> SearchResult:
        searched.append(asked)
        return SearchResult()

    plane.discovery.search = noted  # type: ignore[method-assign, assignment]
    ask = LaunchGroup(owner=BOB, members=(), goal_id=GOAL, parent=ParentTask(comm_id=ROOM, task_id=T1), goal="Judge it.")
    with pytest.raises(InvalidInputError, match="another policy"):
        await plane.setup.launch(ask.model_copy(update={"policy": "another"}))
    await plane.registry.register(Register(card=card("bob", may_team_up=False)))
    with pytest.raises(ForbiddenError, match="according to its card"):
        await plane.setup.launch(ask)
    assert searched == []
