"""Agents whose task names a stored team: they open its group, wait for it through crashes, and do nothing in its place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.agent.rules import RuleBrain
from ioa.group.events import SubgroupClosed
from ioa.ports.brain import TeamLaunch
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, AgentId, comm_id_of_goal, comm_id_of_task
from ioa.protocol.messages import ConcludeGroupDiscussion, Conclusion, SyncTaskAssignment, TaskOutcome
from ioa.protocol.named_teams import PutTeam
from ioa.protocol.team import team_of
from ioa.testing.scripted_brain import ScriptedBrain
from tests.unit.agent.company import GOAL, T1, Company, idle, open_company, task, working
from tests.unit.agent.test_work import Running

ROOM = comm_id_of_goal(GOAL.goal_id)
NESTED = comm_id_of_task(ROOM, T1)
PANEL = team_of(
    {
        "team": "panel",
        "ends": "last",
        "roles": {"chair": "worker", "critic": "helper"},
        "nodes": [{"name": "talk", "roles": ["chair", "critic"], "max": 2}],
    }
)


@pytest.fixture
async def company(tmp_path: Path) -> AsyncIterator[Company]:
    """A company in which a user has put the panel."""
    async with open_company(tmp_path) as opened:
        await opened.network.plane.teams.put(LOCAL, PutTeam(team=PANEL))
        yield opened


def leader(team: str = "panel") -> ScriptedBrain:
    """Has one thing judged by a team, waits for it and concludes."""
    return ScriptedBrain(
        teams=[TeamLaunch(members=(AgentId("worker"),))],
        utterances=[SyncTaskAssignment(tasks=(task().model_copy(update={"team": team}),)), ConcludeGroupDiscussion()],
        conclusions=[Conclusion(content="All done.")],
    )


async def closed(company: Company) -> list[tuple[str, str]]:
    """How the team's groups ended, and what they concluded."""
    events = [stored.entry.event for stored in await company.network.entries(ROOM)]
    return [(one.reason, one.content) for one in events if isinstance(one, SubgroupClosed)]


async def test_the_team_serves_the_task(company: Company) -> None:
    """Its conclusion is the result; the assignee's brain is not asked how, and its function only speaks in its part."""
    heard: list[str] = []

    def chair(words: str) -> str:
        heard.append(words)
        return "The chair says so."

    await company.start(working(lambda _: "The critic agrees.", "helper"), RuleBrain())
    await company.start(working(chair), RuleBrain())
    await company.start(idle("lead"), leader())
    result = await company.has_done()
    state = await company.state(NESTED)
    assert state is not None
    assert (result.reason, await closed(company)) == (Reason.CONCLUDED, [("concluded", "The critic agrees.")])
    assert (len(heard), "do t1" in heard[0], state.depth) == (1, True, 1)


@pytest.mark.parametrize(
    ("team", "why"),
    [("parnel", "The team parnel cannot serve the task (not_found). No team of local is called parnel"), ("panel", "(no_agent)")],
)
async def test_without_the_team_the_task_fails_with_its_reason(company: Company, team: str, why: str) -> None:
    """Nobody is called so, or a role finds nobody; the function is not asked instead."""
    runs: list[str] = []
    await company.start(working(runs.append), RuleBrain())
    await company.start(idle("lead"), leader(team))
    await company.network.offer(GOAL)
    failed = await company.task_result(ROOM)
    assert (failed.outcome, why in failed.task_conclusion, runs) == (TaskOutcome.FAILED, True, [])
    assert (await company.result()).reason is Reason.CONCLUDED


async def test_its_assignee_may_die_meanwhile(company: Company) -> None:
    """Started again it finds the group at work; there is one team and one result, and nobody has done the task alone."""
    run = Running()
    runs: list[str] = []

    def chair(words: str) -> str:
        runs.append(words)
        return "Well?"

    await company.start(working(run.function(), "helper"), RuleBrain())
    await company.start(working(chair), RuleBrain())
    await company.start(idle("lead"), leader())
    await company.network.offer(GOAL)
    await run.began.wait()
    await company.crash("worker")
    await company.restart("worker")
    run.let_go.set()
    result = await company.result()
    assert (result.reason, len(runs), [reason for reason, _ in await closed(company)]) == (Reason.CONCLUDED, 1, ["concluded"])
