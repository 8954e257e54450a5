"""Tell a group's story in a few lines: each call is one event at the scenario's own time, and gives the story so far.

    launched("ada", "bob").assigns("ada", "t1-1:bob").progresses("t1-1").pauses("ada", "t1-1").finishes("t1-1").announces("ada")

A scenario never changes; what the machine refuses raises `IllegalEventError` and leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ioa.group.deadlines import next_deadline
from ioa.group.events import (
    CancelRequested,
    Event,
    GroupLaunched,
    MemberJoined,
    MemberLost,
    MemberReturned,
    QuestionAnswered,
    RepetitionRefused,
    Said,
    SubgroupClosed,
    SubgroupOpened,
    TimerFired,
)
from ioa.group.machine import Effect, step
from ioa.group.rejection import IllegalEventError
from ioa.group.state import ClosedTask, GroupState, OpenTask, WaitingTask
from ioa.protocol.cards import AgentCard
from ioa.protocol.decisions import DecidedBy, ModelCall
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, TaskId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pass,
    PassCause,
    Pause,
    Payload,
    Phase,
    RejectedTask,
    SyncTaskAssignment,
    TaskOutcome,
    TaskQuestion,
    TaskSpec,
    Thinking,
)
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.setup.charter import Charter, Limits, ParentTask
from ioa.protocol.usage import MICROS, NOTHING, Usage
from ioa.repetition import sketches_of

START = datetime(2026, 1, 1, tzinfo=UTC)
COMM = CommId("room")
GOAL = GoalId("goal-1")
MAX_TOKENS = 1_000


WELL: Mapping[str, Any] = {"text": "Well?", "options": ("yes", "no"), "default": "no", "until": START + timedelta(minutes=5)}
"""A question that waits for five minutes."""

PATIENCE = timedelta(seconds=60)
"""That of members that have any."""


def card(agent_id: str, **more: object) -> AgentCard:
    """An agent card with nothing special on it but what is said."""
    return AgentCard.model_validate({"agent_id": agent_id, "name": agent_id, "description": f"{agent_id} helps", **more})


def limits(*, max_turns: int = 10, max_depth: int = 3, deadline: timedelta = timedelta(days=1)) -> Limits:
    """Limits whose time-outs all differ: floor 60 s, conclusion 50 s, lease 30 s, pause 600 s. A thousand tokens, ten of money."""
    return Limits(
        max_turns=max_turns,
        max_tokens=MAX_TOKENS,
        max_cost_micros=10 * MICROS,
        max_depth=max_depth,
        deadline=START + deadline,
        floor_timeout=timedelta(seconds=60),
        task_lease=timedelta(seconds=30),
        pause_timeout=timedelta(seconds=600),
        conclusion_timeout=timedelta(seconds=50),
    )


def charter(
    *members: str,
    limits: Limits,
    depth: int = 0,
    parent: ParentTask | None = None,
    patient: Sequence[str] = (),
    ruled: Sequence[str] | None = None,
) -> Charter:
    """A charter whose first member is the owner. With `ruled` a model speaks for the others."""

    def told(member: str) -> AgentCard:
        speaks = None if ruled is None else "rules" if member in ruled else "model"
        return card(member, patience=PATIENCE if member in patient else None, speaks=speaks)

    return Charter(
        comm_id=COMM,
        goal_id=GOAL,
        goal="Count to ten.",
        owner=AgentId(members[0]),
        team_members=tuple(told(member) for member in members),
        team_up_depth=depth,
        limits=limits,
        parent=parent,
    )


def said(
    sender: str,
    payload: Payload,
    turn: int,
    at: datetime = START,
    comm_id: CommId = COMM,
    usage: Usage | None = None,
    by: DecidedBy | None = None,
    calls: tuple[ModelCall, ...] = (),
) -> Said:
    """A message as the router hands it to the machine."""
    header = Header(
        message_id=MessageId("m1"),
        comm_id=comm_id,
        sender=AgentId(sender),
        state=Phase.DISCUSSING,
        turn=turn,
        after=0,
        sent_at=at,
        usage=usage,
        decided_by=by,
        calls=calls,
    )
    return Said(at=at, message=Message(header=header, payload=payload), sketches=sketches_of(payload))


def specs(tasks: tuple[str, ...]) -> tuple[TaskSpec, ...]:
    """Tasks written as `id:assignee`, or `id:assignee:id,id` if they use others."""
    parts = ((*task.split(":"), "")[:3] for task in tasks)
    return tuple(
        TaskSpec(
            task_id=TaskId(task_id),
            assignee=AgentId(to),
            task_desc=f"do {task_id}",
            uses=tuple(TaskId(used) for used in uses.split(",") if used),
        )
        for task_id, to, uses in parts
    )


def rejected(*task_ids: str) -> tuple[RejectedTask, ...]:
    """Rejections of some tasks."""
    return tuple(RejectedTask(task_id=TaskId(task_id), why=f"{task_id} is wrong") for task_id in task_ids)


@dataclass(frozen=True)
class Scenario:
    """A group, its log and the time."""

    state: GroupState
    log: tuple[Event, ...]
    now: datetime = START
    effects: tuple[Effect, ...] = ()
    policy: Policy | None = None
    audience: tuple[AgentId, ...] = ()

    def happens(self, event: Event) -> Scenario:
        """Any event at all."""
        moved = step(self.state, event, self.policy)
        told = replace(self, effects=moved.effects, audience=moved.audience)
        return replace(told, state=moved.state, log=(*self.log, event))

    def after(self, seconds: float) -> Scenario:
        """Let time pass; nobody looks."""
        return replace(self, now=self.now + timedelta(seconds=seconds))

    def refusal(self, event: Event) -> IllegalEventError:
        """What the machine says to an event that is illegal here."""
        with pytest.raises(IllegalEventError) as refused:
            step(self.state, event, self.policy)
        return refused.value

    def speaks(self, sender: str, payload: Payload, turn: int | None = None, usage: Usage | None = None) -> Scenario:
        """A member's message, on the ground of the current turn unless another is given."""
        return self.happens(said(sender, payload, self.state.turn if turn is None else turn, self.now, usage=usage))

    def says(self, sender: str, *, to: str, tokens: int = 0) -> Scenario:
        """Hand the floor to another member, with something new to say."""
        payload = Discussion(content=f"Point {self.state.turn}.", next_speaker=AgentId(to))
        return self.speaks(sender, payload, usage=Usage(tokens_in=tokens))

    def repeats_itself(self, by: str, message_id: str, *, turn: int | None = None) -> Scenario:
        """The routers refused a message that said nothing new."""
        turn = self.state.turn if turn is None else turn
        return self.happens(
            RepetitionRefused(at=self.now, by=AgentId(by), turn=turn, message_id=MessageId(message_id), repeats_turn=1)
        )

    def assigns(self, sender: str, *tasks: str) -> Scenario:
        """Give out asynchronous tasks."""
        return self.speaks(sender, AsyncTaskAssignment(tasks=specs(tasks)))

    def assigns_and_waits(self, sender: str, *tasks: str) -> Scenario:
        """Give out synchronous tasks."""
        return self.speaks(sender, SyncTaskAssignment(tasks=specs(tasks)))

    def pauses(self, sender: str, *triggers: str) -> Scenario:
        """Wait for tasks."""
        return self.speaks(sender, Pause(triggers=tuple(TaskId(trigger) for trigger in triggers)))

    def rejects(self, sender: str, *tasks: str, to: str) -> Scenario:
        """Reject results, and hand the floor to another member."""
        content = f"Point {self.state.turn}."
        return self.speaks(sender, Discussion(content=content, next_speaker=AgentId(to), rejects=rejected(*tasks)))

    def passes(self, *senders: str, cause: PassCause = PassCause.NOTHING_TO_ADD) -> Scenario:
        """Pass the floor on, one after the other."""
        story = self
        for sender in senders:
            story = story.speaks(sender, Pass(cause=cause))
        return story

    def thinks(self, sender: str) -> Scenario:
        """Keep the floor."""
        return self.speaks(sender, Thinking())

    def announces(self, sender: str) -> Scenario:
        """Announce the conclusion."""
        return self.speaks(sender, ConcludeGroupDiscussion())

    def concludes(self, sender: str, reason: Reason = Reason.CONCLUDED) -> Scenario:
        """State the conclusion."""
        return self.speaks(sender, Conclusion.model_validate({"content": "Ten.", "reason": reason}))

    def progresses(self, task_id: str, tokens: int = 0) -> Scenario:
        """The assignee's next progress report; the task has cost so many tokens by now."""
        task = self.open(task_id)
        payload = InformTaskProgress(task_id=task.task_id, number=task.progress + 1, usage=Usage(tokens_out=tokens))
        return self.speaks(task.assignee, payload, turn=task.turn)

    def finishes(self, task_id: str, tokens: int = 0) -> Scenario:
        """The assignee's result; the task has cost so many tokens in all."""
        task = self.open(task_id)
        payload = InformTaskResult(task_id=task.task_id, task_conclusion="done", usage=Usage(tokens_out=tokens))
        return self.speaks(task.assignee, payload, turn=task.turn)

    def fails(self, task_id: str) -> Scenario:
        """The assignee's report that it could not do the task."""
        task = self.open(task_id)
        payload = InformTaskResult(task_id=task.task_id, outcome=TaskOutcome.FAILED, task_conclusion="It broke.")
        return self.speaks(task.assignee, payload, turn=task.turn)

    def nests(self, task_id: str, subgroup: str = "sub") -> Scenario:
        """The assignee opens a nested team."""
        task = self.open(task_id)
        return self.happens(
            SubgroupOpened(at=self.now, task_id=task.task_id, by=task.assignee, subgroup=CommId(subgroup)),
        )

    def nested_ends(
        self, task_id: str, subgroup: str = "sub", reason: Reason = Reason.CONCLUDED, *, turns: int = 0, usage: Usage = NOTHING
    ) -> Scenario:
        """The nested team ends."""
        comm_id = CommId(subgroup)
        return self.happens(
            SubgroupClosed(
                at=self.now, task_id=TaskId(task_id), subgroup=comm_id, reason=reason, content="…", turns=turns, usage=usage
            ),
        )

    def asks(self, sender: str, **other: Any) -> Scenario:
        """Ask out of the group."""
        return self.speaks(sender, AskUser(**{**WELL, **other}))

    def task_asks(self, task_id: str, **other: Any) -> Scenario:
        """A running task asks its next question."""
        task = self.open(task_id)
        asked = TaskQuestion(**{**WELL, "task_id": task.task_id, "number": task.asked + 1, **other})
        return self.speaks(task.assignee, asked, turn=task.turn)

    def answered(self, answer: str, task_id: str | None = None) -> Scenario:
        """The goal's user answers what was asked out of the group, or what a task asks."""
        return self.happens(self.answer(answer, task_id))

    def answer(self, answer: str, task_id: str | None = None) -> QuestionAnswered:
        """The event of an answer."""
        turn, number = (self.state.turn, 0) if task_id is None else (0, self.open(task_id).asked)
        task = None if task_id is None else TaskId(task_id)
        return QuestionAnswered(at=self.now, turn=turn, task_id=task, number=number, answer=answer, by="user")

    def timer(self) -> Scenario:
        """Let the next deadline pass, and the timer fire."""
        due = next_deadline(self.state)
        assert due is not None
        return replace(self, now=due).happens(TimerFired(at=due))

    def timers(self, count: int) -> Scenario:
        """Let some deadlines pass one after the other."""
        story = self
        for _ in range(count):
            story = story.timer()
        return story

    def loses(self, *agents: str) -> Scenario:
        """Members' leases run out."""
        story = self
        for agent in agents:
            story = story.happens(MemberLost(at=self.now, agent_id=AgentId(agent)))
        return story

    def invites(self, by: str, agent: str, role: str | None = None, **about: object) -> Scenario:
        """A member that has the floor has somebody join."""
        told = {"by": by, "turn": self.state.turn, "role": role, "why": "Help us.", **about}
        return self.happens(MemberJoined.model_validate({"at": self.now, "card": card(agent), **told}))

    def regains(self, agent: str) -> Scenario:
        """A lost member registers again."""
        return self.happens(MemberReturned(at=self.now, agent_id=AgentId(agent)))

    def cancelled(self) -> Scenario:
        """Somebody cancels the group."""
        return self.happens(CancelRequested(at=self.now))

    def out_of_budget(self) -> Scenario:
        """The budget is spent by the floor holder, who gives itself a task."""
        assert self.holder is not None
        payload = AsyncTaskAssignment(tasks=specs((f"t{self.state.turn}-last:{self.holder}",)))
        return self.speaks(self.holder, payload, usage=Usage(tokens_in=MAX_TOKENS))

    def open(self, task_id: str) -> OpenTask:
        """A task that must be open."""
        task = self.state.task(TaskId(task_id))
        assert isinstance(task, OpenTask)
        return task

    def waiting(self) -> tuple[str, ...]:
        """The tasks that have not begun."""
        return tuple(task.task_id for task in self.state.tasks if isinstance(task, WaitingTask))

    def outcome(self, task_id: str) -> TaskOutcome | None:
        """How a task ended; None while it is open."""
        task = self.state.task(TaskId(task_id))
        return task.outcome if isinstance(task, ClosedTask) else None

    @property
    def phase(self) -> Phase:
        """Where the group stands."""
        return self.state.phase

    @property
    def holder(self) -> str | None:
        """Who has the floor."""
        return self.state.floor_holder


def launched(
    *members: str,
    max_turns: int = 10,
    max_depth: int = 3,
    depth: int = 0,
    parent: ParentTask | None = None,
    patient: Sequence[str] = (),
    ruled: Sequence[str] | None = None,
) -> Scenario:
    """A group that has just been opened; the first member owns it and has the floor."""
    rules = limits(max_turns=max_turns, max_depth=max_depth)
    opened = charter(*members, limits=rules, depth=depth, parent=parent, patient=patient, ruled=ruled)
    event = GroupLaunched(at=START, charter=opened)
    return Scenario(step(None, event).state, (event,))


def launched_under(
    policy: Policy,
    cast: Mapping[str, Sequence[str]],
    *members: str,
    max_turns: int = 100,
    patient: Sequence[str] = (),
) -> Scenario:
    """A group that a policy leads, with who plays which role; the first member owns it."""
    castings = tuple(Casting(role=role.name, members=tuple(map(AgentId, cast[role.name]))) for role in policy.roles)
    free = charter(*members, limits=limits(max_turns=max_turns), patient=patient)
    event = GroupLaunched(at=START, charter=Charter.model_validate({**dict(free), "policy": policy, "cast": castings}))
    return Scenario(step(None, event).state, (event,), policy=policy)
