"""Nested groups of tasks that name a stored team: whose it may be, who is cast in it, and what becomes of it else."""

from __future__ import annotations

from typing import Any

import pytest

from ioa.errors import (
    ForbiddenError,
    InvalidInputError,
    IoaError,
    NoAgentError,
    NotFoundError,
    UnavailableError,
)
from ioa.group.events import GroupLaunched
from ioa.group.requests import LaunchGroup
from ioa.group.state import ParentTask
from ioa.protocol.ids import LOCAL, TaskId, UserId, comm_id_of_task
from ioa.protocol.messages import SyncTaskAssignment, TaskSpec
from ioa.protocol.named_teams import PutTeam
from ioa.protocol.policy import Policy
from ioa.protocol.registry import Register
from ioa.protocol.search import Search, SearchResult
from ioa.protocol.team import TeamSpec, team_of
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, Plane, open_task

T1 = TaskId("t1-1")
NESTED = comm_id_of_task(ROOM, T1)


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


async def policy(plane: Plane) -> Policy | None:
    """The policy of the task's group."""
    launched = (await plane.entries(NESTED))[0].entry.event
    assert isinstance(launched, GroupLaunched)
    return launched.charter.policy


async def test_the_team_leads_the_tasks_group() -> None:
    """Its assignee owns it and opens it as any nested group; who plays what, and by which policy, group setup says."""
    plane = await given(panel())
    nested = await plane.nest(T1, BOB)
    assert await policy(plane) == panel().policy
    assert (nested.depth, nested.limits.max_turns, nested.owner) == (1, 4, BOB)
    assert open_task(await plane.state(), T1).subgroup == NESTED


async def test_the_group_keeps_the_version_that_it_was_opened_with() -> None:
    """Whoever opens it again, as after a crash, finds the same group."""
    plane = await given(panel())
    first = await plane.nest(T1, BOB)
    await plane.teams.put(LOCAL, PutTeam(team=panel(most=3)))
    assert await plane.nest(T1, BOB) == first


async def test_a_version_may_be_named() -> None:
    """Whatever is put later."""
    plane = await given(panel(), name="panel@1")
    await plane.teams.put(LOCAL, PutTeam(team=panel(most=3)))
    await plane.nest(T1, BOB)
    assert await policy(plane) == panel().policy


async def test_launch_fails_while_discovery_is_unavailable() -> None:
    """The same launch succeeds when discovery answers."""
    plane = await given(panel(critic={"need": "finds faults"}))
    plane.discovery.reachable = False
    with pytest.raises(UnavailableError):
        await plane.nest(T1, BOB)
    plane.discovery.reachable, plane.discovery.found = True, [(card("eve"), 0.8)]
    assert [member.agent_id for member in (await plane.nest(T1, BOB)).members] == [BOB, EVE]


MISSING = panel(critic="nobody")
CASES: list[tuple[str, TeamSpec | None, UserId, type[IoaError], str]] = [
    ("unknown", None, LOCAL, NotFoundError, "No team of local is called panel"),
    ("another user's", panel(), UserId("mallory"), NotFoundError, "No team of local is called panel"),
    ("incomplete", panel(critic="nobody"), LOCAL, NoAgentError, "The role critic has too few agents"),
    ("not found", panel(critic={"need": "finds faults"}), LOCAL, NoAgentError, "no agent fits the need “finds faults”"),
]


@pytest.mark.parametrize(("team", "user", "error", "why"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_without_the_team_there_is_no_group(team: TeamSpec | None, user: UserId, error: type[IoaError], why: str) -> None:
    """Nothing is lent, and the reason says what was missing."""
    plane = await given(team, user=user)
    with pytest.raises(error, match=why):
        await plane.nest(T1, BOB)
    assert ((await plane.state()).loans, await plane.entries(NESTED)) == ((), [])


@pytest.mark.parametrize("user", [LOCAL, UserId("mallory")])
@pytest.mark.parametrize("guessed", ["pane", "panel@7"])
async def test_a_guess_tells_of_no_team(user: UserId, guessed: str) -> None:
    """Who gives itself tasks learns neither the names that are near, nor versions, nor whose they are."""
    plane = await given(panel(), name=guessed, user=user)
    with pytest.raises(NotFoundError) as refused:
        await plane.nest(T1, BOB)
    assert str(refused.value).startswith(f"No team of local is called {guessed}. ") and "mallory" not in str(refused.value)


async def test_a_policy_is_the_teams_and_never_the_requests() -> None:
    """Whoever serves a task neither chooses nor plans who works at it."""
    plane = await given(panel())
    parent = ParentTask(comm_id=ROOM, task_id=T1)
    for more in ({"policy": MISSING.policy.digest}, {"team": MISSING}):
        with pytest.raises(InvalidInputError):
            await plane.setup.launch(
                LaunchGroup.model_validate(
                    {"owner": BOB, "members": (), "goal_id": GOAL, "parent": parent, "goal": "Judge it.", **more}
                )
            )


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
    with pytest.raises(ForbiddenError, match="its card says so"):
        await plane.setup.launch(ask)
    assert searched == []
