"""What brains and functions spend reaches the group's own count, once, whatever is refused, lost or begun again on the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ioa.agent.brain_port import TaskView
from ioa.agent.task_context import TaskContext
from ioa.agent.turn_view import TurnView
from ioa.errors import InvalidInputError
from ioa.ports.brain_types import Invite, Mission, NobodyFits, TeamLaunch, TeamTools, Utterance
from ioa.protocol.decisions import ModelCall
from ioa.protocol.goals import Goal, Reason
from ioa.protocol.ids import AgentId, GoalId, comm_id_of_goal
from ioa.protocol.messages import (
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    SyncTaskAssignment,
)
from ioa.protocol.usage import Usage
from ioa.testing import RecordingContext
from ioa.testing.scripted_brain import ScriptedBrain
from tests.rig.deadline import eventually
from tests.unit.agent.company import GOAL, Company, idle, one_task, task, working

ROOM = comm_id_of_goal(GOAL.goal_id)
THOUGHT = Usage(tokens_in=100, tokens_out=10)


class DearBrain(ScriptedBrain):
    """A scripted brain each of whose decisions costs the same."""

    def __init__(self, *utterances: Utterance) -> None:
        team = TeamLaunch(members=(AgentId("worker"),))
        super().__init__(teams=[team], utterances=utterances, conclusions=[Conclusion(content="All done.")])

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Play the next team, at a price."""
        mission.meter.add(THOUGHT)
        mission.meter.note(ModelCall(purpose="form", usage=THOUGHT))
        return await super().form_team(mission, tools)

    async def speak(self, view: TurnView) -> Utterance | Invite:
        """Play the next utterance, at a price."""
        view.meter.add(THOUGHT)
        view.meter.note(ModelCall(purpose="speak", usage=THOUGHT))
        return await super().speak(view)

    async def conclude(self, view: TurnView) -> Conclusion:
        """Play the next conclusion, at a price."""
        view.meter.add(THOUGHT)
        return await super().conclude(view)

    async def approach(self, task: TaskView, tools: TeamTools) -> TeamLaunch | None:
        """Do the task alone, at a price."""
        task.group.meter.add(THOUGHT)
        task.group.meter.note(ModelCall(purpose="approach", usage=THOUGHT))
        return await super().approach(task, tools)


def _one_task() -> DearBrain:
    return DearBrain(SyncTaskAssignment(tasks=(task(),)), ConcludeGroupDiscussion())


async def test_result_contains_the_usage_of_all_members(company: Company) -> None:
    """Finding the team, two turns, the conclusion, the assignee's decision, and what the function reports, from its thread too."""

    def work(words: str, ctx: TaskContext) -> str:
        ctx.spend(tokens=5, cost=0.25)
        ctx.spend(answer_tokens=2, cost=0.000_000_1)
        return "done"

    await company.start(working(work), DearBrain())
    await company.start(idle("lead"), _one_task())
    result = await company.has_done()
    assert (result.reason, result.usage) == (
        Reason.CONCLUDED,
        Usage(tokens_in=5 * 100 + 5, tokens_out=5 * 10 + 2, cost_micros=250_001),
    )


async def test_a_refused_thought_is_paid_with_the_next_message(company: Company) -> None:
    """The accepted message contains the usage of both attempts."""
    nowhere = Discussion(content="You.", next_speaker=AgentId("nobody"))
    await company.start(idle("worker"))
    await company.start(idle("lead"), DearBrain(nowhere, ConcludeGroupDiscussion()))
    await company.has_done()
    headers = [message.header for message in await company.messages(ROOM)]
    assert [header.usage for header in headers] == [THOUGHT.plus(THOUGHT), THOUGHT]
    assert [[(call.came_to, call.about) for call in header.calls] for header in headers] == [
        [("rejected", "bad_next_speaker"), ("taken", "")],
        [],
    ]


async def test_a_budget_cuts_the_discussion_short(company: Company) -> None:
    """The second thought crosses it; the owner concludes that the goal was reached all the same, and the result names the limit."""
    goal = Goal(goal_id=GoalId("goal-1"), goal="Have it done.", agent=AgentId("lead"), max_tokens=200)
    await company.start(idle("worker"))
    await company.start(idle("lead"), _one_task())
    result = await company.has_done(goal)
    assert (result.reason, result.limit, result.content) == (Reason.CONCLUDED, Reason.BUDGET, "All done.")
    assert result.usage.tokens == 330


async def test_second_attempt_adds_to_the_usage_of_the_first(company: Company) -> None:
    """Reported usage is neither lost nor counted twice."""
    began, let_go = asyncio.Event(), asyncio.Event()

    async def work(words: str, ctx: TaskContext) -> str:
        ctx.spend(tokens=7)
        ctx.progress("spending")
        began.set()
        await let_go.wait()
        return "done"

    await company.start(working(work))
    await company.start(idle("lead"), one_task())
    await company.network.offer(GOAL.model_copy(update={"max_tokens": 1_000}))
    await began.wait()
    await eventually(lambda: _spent(company), until=lambda spent: spent == 7)
    await company.crash("worker")
    let_go.set()
    await company.restart("worker")
    assert (await company.result()).usage == Usage(tokens_in=14)


async def _spent(company: Company) -> int:
    state = await company.state(ROOM)
    return state.spent.tokens if state else 0


@pytest.mark.parametrize("wrong", [{"tokens": -1}, {"cost": -0.5}, {"cost": float("nan")}, {"tokens": 1.5}, {"cost": "much"}])
def test_invalid_spending_is_rejected(wrong: dict[str, Any]) -> None:
    """The error names the parameters."""
    with pytest.raises(InvalidInputError, match=r"^tokens, answer_tokens and cost"):
        RecordingContext(Path()).spend(**wrong)
