"""Groups, cards and team tools that the tests of the model brain share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from ioa.agent.model import Budget
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, InformTaskProgress, TaskSpec
from ioa.protocol.setup.charter import Charter, Limits
from ioa.testing.scripted_model import ScriptedCall
from tests.unit.agent.model.machine_group import START, Group, card

ANN, BOB, CARL = AgentId("ann"), AgentId("bob"), AgentId("carl")
CARDS = tuple(
    card(agent_id, does, may_team_up=True, uses_model=True)
    for agent_id, does in (("ann", "leads work"), ("bob", "computes statistics of CSV files"), ("carl", "draws charts"))
)
KNOWN = tuple(zip(CARDS, ({"leads": 0.65}, {"csv": 0.65}, {"chart": 0.65, "draw": 0.55}), strict=True))
"""The agents, as discovery finds them by their words."""
SHORT = Budget(max_answer=1_000, answer_timeout=timedelta(seconds=5))


def launched(goal: str = "total sales in sales.csv", max_turns: int = 6) -> Group:
    """Open a group of ann, bob and carl, in which ann has the floor."""
    return Group(
        Charter(
            comm_id=CommId("c1"),
            goal_id=GoalId("g1"),
            goal=goal,
            owner=ANN,
            team_members=CARDS,
            team_up_depth=0,
            limits=Limits(max_turns=max_turns, max_depth=1, deadline=START + timedelta(hours=1)),
        )
    )


def with_open_task(group: Group, task_id: str = "t1-1", assignee: AgentId = BOB) -> Group:
    """Let ann give out one asynchronous task, which its assignee has acknowledged."""
    group.say(ANN, AsyncTaskAssignment(tasks=(TaskSpec(task_id=TaskId(task_id), assignee=assignee, task_desc="total sales"),)))
    task = group.state.open_tasks[-1]
    group.say(assignee, InformTaskProgress(task_id=task.task_id, number=1), task.turn)
    return group


def decision(**fields: object) -> str:
    """Write an answer as a model that keeps to the shape would."""
    return speech((), **fields)


def speech(rejects: Sequence[tuple[str, str]], **fields: object) -> str:
    """The same, which rejects tasks, each for a reason."""
    return json.dumps({"rejects": [{"task": task, "why": why} for task, why in rejects], "decision": fields})


def shown(asked: ScriptedCall) -> str:
    """Return the texts of a request after its system message; each but the first below its role."""
    first, *others = asked.messages[1:]
    return "\n".join([first.content, *(f"[{message.role}]\n{message.content}" for message in others)])
