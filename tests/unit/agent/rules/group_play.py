"""Play a group on the real machine: everybody speaks by the rule brain, and the test decides how tasks and members fare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from ioa.agent.rules import RuleBrain
from ioa.agent.turn_view import TurnView
from ioa.group.events import Event, GroupLaunched, Said, name_of
from ioa.group.machine import legal_kinds, step
from ioa.group.state import Charter, ClosedTask, Concluding, GroupState, Limits, OpenTask, PlannedTask, Task
from ioa.ports.brain import TaskRecord
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, TaskId, name_of_task_id
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Payload,
    SyncTaskAssignment,
    TaskOutcome,
    rejects_of,
)
from ioa.protocol.usage import Usage
from tests.unit.agent.whole_conclusion import in_a_message

START = datetime(2025, 1, 1, tzinfo=UTC)
MAX_TOKENS = 1_000
OWNER = AgentId("owner")


def card(agent_id: str, description: str = "does things", **more: object) -> AgentCard:
    """A card with only what a test says of it."""
    return AgentCard.model_validate({"agent_id": agent_id, "name": agent_id, "description": description, **more})


def planned(task_id: str, assignee: str, task_desc: str = "", uses: Sequence[str] = (), others: Sequence[str] = ()) -> PlannedTask:
    """A planned task in one line."""
    return PlannedTask(
        task_id=TaskId(task_id),
        assignee=AgentId(assignee),
        task_desc=task_desc or f"do {task_id}",
        uses=tuple(TaskId(use) for use in uses),
        others=tuple(AgentId(other) for other in others),
    )


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


@dataclass
class GroupPlay:
    """A group and its record. Nothing is caught: a rejected message fails the test."""

    charter: Charter
    now: datetime = START
    brain: RuleBrain = field(default_factory=RuleBrain)
    messages: list[Message] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    begun: set[TaskId] = field(default_factory=set)
    rejected: dict[TaskId, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state: GroupState = step(None, GroupLaunched(at=self.now, charter=self.charter)).state

    def apply(self, event: Event) -> None:
        """Apply an event and record what was said."""
        self.state = step(self.state, event).state
        self.begun |= {task.task_id for task in self.state.open_tasks}
        if isinstance(event, Said):
            self.messages.append(event.message)
            self.rejected |= {one.task_id: one.why for one in rejects_of(event.message.payload)}

    def view(self, me: AgentId) -> TurnView:
        """What a member knows now."""
        specs = [task for message in self.messages if isinstance(message.payload, _ASSIGNMENTS) for task in message.payload.tasks]
        results = {
            message.payload.task_id: message.payload for message in self.messages if isinstance(message.payload, InformTaskResult)
        }
        records = []
        for spec in specs:
            task = self.state.task(spec.task_id)
            said = results.get(spec.task_id)
            outcome = task.outcome if isinstance(task, ClosedTask) else None
            conclusion = said.task_conclusion if said else task.why if isinstance(task, ClosedTask) else ""
            given_up = outcome is TaskOutcome.FAILED and said is None
            started, rejected = spec.task_id in self.begun, self.rejected.get(spec.task_id, "")
            artifacts, declined = (said.artifacts, said.declined) if said else ((), False)
            records.append(TaskRecord(spec, outcome, conclusion, artifacts, given_up, started, rejected, declined))
        legal, reachable = tuple(map(name_of, legal_kinds(self.state, me, self.now))), self.state.reachable(self.now)
        return TurnView(me, self.charter, self.state, tuple(self.messages), tuple(records), legal, reachable)

    def task(self, name: str) -> Task | None:
        """The last attempt at a planned task."""
        return next((task for task in reversed(self.state.tasks) if name_of_task_id(task.task_id) == name), None)

    async def speak(self) -> None:
        """Let the floor holder speak by its brain."""
        me = self.state.floor_holder
        assert me is not None
        view = self.view(me)
        if isinstance(self.state.stage, Concluding):
            await self._say_payload(me, await self.brain.conclude(view))
        else:
            await self._say_payload(me, await self.brain.speak(view))

    async def _say_payload(self, me: AgentId, payload: Payload) -> None:
        self.kinds.append(payload.type)
        self.say(me, payload, self.state.turn)

    def say(self, me: AgentId, payload: Payload, turn: int) -> None:
        """Send a message."""
        header = Header(
            message_id=MessageId(f"m{len(self.messages)}"),
            comm_id=self.state.comm_id,
            sender=me,
            state=self.state.phase,
            turn=turn,
            after=0,
            sent_at=self.now,
        )
        self.apply(Said(at=self.now, message=Message(header=header, payload=in_a_message(payload))))

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
        payload = InformTaskResult(
            task_id=task.task_id, outcome=outcome, task_conclusion=text, artifacts=tuple(artifacts), declined=declined
        )
        self.say(task.assignee, payload, task.turn)

    async def run(self, failing: Sequence[str] = (), said: dict[str, str] | None = None, declining: Sequence[str] = ()) -> None:
        """Play to the end; all assignees answer and finish in order.

        `failing` names tasks, and agents that fail all of theirs; `declining` names agents that do no such tasks.
        """
        while not self.state.phase.is_terminal:
            if self.state.floor_holder is not None:
                await self.speak()
                self.acknowledge_if_handing()
            else:
                task = self.state.open_tasks[0]
                name = name_of_task_id(task.task_id)
                declines = task.assignee in declining
                fails = declines or name in failing or task.assignee in failing
                text = (said or {}).get(task.assignee) or (said or {}).get(name, "")
                self.finish(task, TaskOutcome.FAILED if fails else TaskOutcome.DONE, text, declined=declines)

    def acknowledge_if_handing(self) -> None:
        """Answer an assignment as clients do at once."""
        if self.kinds[-1] == "ASYNC_TASK_ASSIGNMENT":
            self.acknowledge()


_ASSIGNMENTS = (SyncTaskAssignment, AsyncTaskAssignment)


def artifact(name: str) -> Artifact:
    """A file by reference."""
    return Artifact(name=name, object_name=f"objects/{name}", size_bytes=1, sha256="0" * 64)
