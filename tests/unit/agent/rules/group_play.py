"""Play a group on the real machine: members speak by rules, and the test ends tasks and loses members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal

from ioa.agent.rules import RuleBrain
from ioa.group.state import Concluding, Ended, OpenTask
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, GoalId, name_of_task_id
from ioa.protocol.messages import InformTaskProgress, InformTaskResult, Payload, TaskOutcome
from ioa.protocol.setup.charter import Charter, Limits, PlannedTask
from ioa.protocol.usage import Usage
from tests.unit.agent.model.machine_group import START, Group, card

MAX_TOKENS = 1_000
OWNER = AgentId("owner")


def planned(task_id: str, assignee: str, task_desc: str = "", uses: Sequence[str] = (), others: Sequence[str] = ()) -> PlannedTask:
    """A planned task in one line."""
    about = {"task_id": task_id, "assignee": assignee, "task_desc": task_desc or f"do {task_id}"}
    return PlannedTask.model_validate({**about, "uses": tuple(uses), "others": tuple(others)})


def charter_of(
    plan: Sequence[PlannedTask] = (),
    members: Sequence[AgentCard] = (),
    goal: str = "do it",
    max_turns: int = 40,
    **more: object,
) -> Charter:
    """A charter for a plan; its assignees are members."""
    cards = {member.agent_id: member for member in (card(OWNER), *members)}
    for task in plan:
        for agent_id in (task.assignee, *task.others):
            cards.setdefault(agent_id, card(agent_id))
    return Charter.model_validate(
        {
            "comm_id": CommId("g1"),
            "goal_id": GoalId("goal"),
            "goal": goal,
            "owner": OWNER,
            "team_members": tuple(cards.values()),
            "team_up_depth": 0,
            "limits": Limits(max_turns=max_turns, max_tokens=MAX_TOKENS, deadline=START + timedelta(hours=9)),
            "plan": tuple(plan),
            **more,
        }
    )


class GroupPlay(Group):
    """A group whose members speak by rules. Nothing is caught: a rejected message fails the test."""

    def __init__(self, charter: Charter) -> None:
        super().__init__(charter)
        self.brain = RuleBrain()
        self.kinds: list[str] = []

    @property
    def last(self) -> Payload:
        """The last message."""
        return self.history.messages()[-1].payload

    @property
    def ended(self) -> Ended:
        """How the group has ended."""
        assert isinstance(self.state.stage, Ended)
        return self.state.stage

    @property
    def assignees(self) -> list[AgentId]:
        """The assignees of all tasks so far, in order."""
        return [task.spec.assignee for task in self.view(OWNER).tasks]

    async def speak(self) -> None:
        """Let the floor holder speak by its brain."""
        me = self.state.floor_holder
        assert me is not None
        view = self.view(me)
        said: Payload = await (self.brain.conclude if isinstance(self.state.stage, Concluding) else self.brain.speak)(view)
        self.kinds.append(said.type)
        self.say(me, said)

    def acknowledge(self) -> None:
        """Let all assignees answer that they work."""
        for task in self.state.open_tasks:
            if task.progress == 0:
                self.say(task.assignee, InformTaskProgress(task_id=task.task_id, number=1), task.turn)

    def spend(self, task: OpenTask) -> None:
        """Let an assignee report that its task has used up the budget."""
        usage = Usage(tokens_in=MAX_TOKENS)
        report = InformTaskProgress(task_id=task.task_id, number=task.progress + 1, usage=usage)
        self.say(task.assignee, report, task.turn)

    def finish(
        self,
        task: OpenTask,
        outcome: Literal[TaskOutcome.DONE, TaskOutcome.FAILED] = TaskOutcome.DONE,
        said: str = "",
        artifacts: Sequence[Artifact] = (),
        declined: bool = False,
    ) -> None:
        """Let an assignee report a result."""
        text = said or f"result of {name_of_task_id(task.task_id)}"
        about = {"outcome": outcome, "task_conclusion": text, "artifacts": tuple(artifacts), "declined": declined}
        self.say(task.assignee, InformTaskResult.model_validate({"task_id": task.task_id, **about}), task.turn)

    async def run(self, failing: Sequence[str] = (), said: Mapping[str, str] | None = None, declining: Sequence[str] = ()) -> None:
        """Play to the end; all assignees answer and finish in order.

        `failing` names tasks, and agents that fail all of theirs; `declining` names agents that do no such tasks.
        """
        texts = said or {}
        while not self.state.phase.is_terminal:
            if self.state.floor_holder is not None:
                await self.speak()
                if self.kinds[-1] == "ASYNC_TASK_ASSIGNMENT":
                    self.acknowledge()
            else:
                task = self.state.open_tasks[0]
                names = (task.assignee, name_of_task_id(task.task_id) or "")
                declines = task.assignee in declining
                fails = declines or not {*names}.isdisjoint(failing)
                text = next((texts[name] for name in names if name in texts), "")
                self.finish(task, TaskOutcome.FAILED if fails else TaskOutcome.DONE, text, declined=declines)


def artifact(name: str) -> Artifact:
    """A file by reference."""
    return Artifact(name=name, object_name=f"objects/{name}", size_bytes=1, sha256="0" * 64)
