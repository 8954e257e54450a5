"""The state of a group: the data of its last log entry, from which the next step is computed.

The state is computed from the log. It contains no messages except the conclusion of an ended group, so that it stays small in a
long conversation. Data of a single phase is in that phase's stage class.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from ioa.group.policy.position import Course
from ioa.protocol.cards import Patience
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import Artifact, Degraded, ForcedReason, GoalReference, Reason
from ioa.protocol.ids import AgentId, AgentIdField, CommId, CommIdField, MessageIdField, TaskId, TaskIdField, turn_of_task_id
from ioa.protocol.messages import PassCause, Phase, Question, TaskOutcome
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.policy_parts import MAX_FIELDS, MAX_ROLES, Form, Name
from ioa.protocol.setup.charter import MAX_MEMBERS, Limits, ParentTask, Timeout
from ioa.protocol.teams.stored_teams import ReferenceField
from ioa.protocol.usage import NOTHING, Count, Usage

Sketch = Annotated[str, Field(max_length=16)]
"""Sketch of a text, by which texts are compared; see `ioa.repetition`."""


class Member(Model):
    """A member, and since when its lease has expired, if it has. `patience` is that of its card.

    `roles` are the numbers of its roles in the group's policy. A removed member has no part, and a `human` one is never lost.
    """

    agent_id: AgentIdField
    lost: bool = False
    lost_at: Time | None = None
    patience: Patience | None = None
    roles: Annotated[tuple[int, ...], Field(max_length=MAX_ROLES), OMITTED_IF_EMPTY] = ()
    removed: Annotated[bool, OMITTED_IF_EMPTY] = False
    human: Annotated[bool, OMITTED_IF_EMPTY] = False

    @property
    def takes_part(self) -> bool:
        """Whether the member can speak: its lease is valid, and it was not removed."""
        return not self.lost and not self.removed


class TaskMode(StrEnum):
    """Whether the discussion waits for a task."""

    SYNC = "sync"
    ASYNC = "async"


Earshot = Annotated[tuple[Count, ...], Field(max_length=MAX_MEMBERS), OMITTED_IF_EMPTY]
"""The members that know a task, by number: the hearers of its assignment, and its assignee. Empty where all hear all."""


class OfTask(Question):
    """A question of a running task, with its number within the task. `role` is the role of the asked person; None: the assigner."""

    number: Annotated[int, Field(ge=1)]
    role: Annotated[Name | None, OMITTED_IF_EMPTY] = None


class GroupTask(Model):
    """A task, open or not. `subgroup` is the nested group that serves it."""

    task_id: TaskIdField
    assignee: AgentIdField
    subgroup: Annotated[CommIdField | None, OMITTED_IF_EMPTY] = None
    earshot: Earshot = ()

    @property
    def turn(self) -> int:
        """The turn of its assignment, which its id contains."""
        return turn_of_task_id(self.task_id) or 0


class UnfinishedTask(GroupTask):
    """A task that is not closed. A stored `team` may serve it.

    `sketch` is the sketch of its text and of the tasks that it uses; empty if texts are not compared.
    """

    assigner: AgentIdField
    mode: TaskMode
    sketch: Sketch = ""
    team: Annotated[ReferenceField | None, OMITTED_IF_EMPTY] = None

    def closed(self, outcome: TaskOutcome, why: str = "") -> ClosedTask:
        """Return this task, ended."""
        known = {name: getattr(self, name) for name in GroupTask.model_fields}
        return ClosedTask(outcome=outcome, why=why, **known)


class OpenTask(UnfinishedTask):
    """A task that its assignee has to close.

    Attributes:
        progress: Number of the last report, 0 before the first.
        suspect: Whether the lease, or the assignee's own lease, expired once. The task fails when the lease expires again: two
            expiries in a row prove that the system was up in between and the assignee could have reported.
        deadline: Time at which the task fails, despite any progress; None if only the group's deadline ends it.
        spent: Usage of the task so far, as its assignee reports it.
        asked: Number of its last question, 0 before the first.
        question: Its question, as long as it waits for an answer.
    """

    status: Literal["open"] = "open"
    lease_until: Time
    progress: int = 0
    suspect: bool = False
    deadline: Time | None = None
    spent: Usage = NOTHING
    asked: Annotated[Count, OMITTED_IF_EMPTY] = 0
    question: Annotated[OfTask | None, OMITTED_IF_EMPTY] = None


class WaitingTask(UnfinishedTask):
    """A task that starts when the tasks in `after` are done. It has no lease, and its `timeout` counts from its start."""

    status: Literal["waiting"] = "waiting"
    after: tuple[TaskIdField, ...] = ()
    timeout: Timeout | None = None


class ClosedTask(GroupTask):
    """A task that has ended; only a task that is done may still be rejected. `why` is the reason of any other outcome than done."""

    status: Literal["closed"] = "closed"
    outcome: TaskOutcome
    why: str = ""


Task = Annotated[OpenTask | WaitingTask | ClosedTask, Field(discriminator="status")]


class Loan(Model):
    """The share of its parent's budget that a nested group may use until it has ended. None is no limit."""

    subgroup: CommIdField
    turns: Annotated[int, Field(ge=1)]
    tokens: Annotated[int, Field(ge=1)] | None
    cost_micros: Annotated[int, Field(ge=1)] | None
    deadline: Time


class Discussing(Model):
    """`holder` has the floor for turn `GroupState.turn`, from `since` until `until`.

    `repeated` is a message of this turn that was rejected as a repetition.
    """

    phase: Literal[Phase.DISCUSSING] = Phase.DISCUSSING
    holder: AgentIdField
    until: Time
    repeated: MessageIdField | None = None
    since: Time


class FieldVotes(Model):
    """The values of a field that `count` members filled in. `lowest`, `highest` and `total` are set for numbers.

    `counts` contains the number of each value: options in their order, yes and no, members in the order of their first mention.
    """

    name: Name
    counts: Annotated[tuple[tuple[str, Count], ...], Field(max_length=MAX_MEMBERS)] = ()
    count: Count = 0
    lowest: int | None = None
    highest: int | None = None
    total: int | None = None


class Votes(Model):
    """The answers to a question of a member to several members that speak in parallel.

    Attributes:
        turn: The turn of the answers.
        by: The asking member.
        answered: Number of members that answered.
        silent: Members that did not answer.
    """

    turn: int
    by: AgentIdField
    fields: Annotated[tuple[FieldVotes, ...], Field(max_length=MAX_FIELDS)] = ()
    answered: Count = 0
    silent: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()


class Seat(Model):
    """The right of a member to speak in parallel with others, and its timeout."""

    agent_id: AgentIdField
    until: Time


class Gathering(Model):
    """Several members speak in parallel, once each, all in turn `GroupState.turn`.

    Attributes:
        seats: Members that have not spoken yet.
        votes: Answers so far to a member that asked; it has the floor again afterwards. None if the policy granted the seats.
        form: Fields that this member asks for.
        away: Members whose models are unavailable; they are asked again.
        begun: Turn of the first message, if members are asked again that must not read the earlier messages.
    """

    phase: Literal[Phase.GATHERING] = Phase.GATHERING
    seats: Annotated[tuple[Seat, ...], Field(max_length=MAX_MEMBERS)]
    since: Time
    votes: Votes | None = None
    form: Form = ()
    away: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()
    begun: Annotated[Count, OMITTED_IF_EMPTY] = 0

    @property
    def until(self) -> datetime:
        """The earliest timeout of a seat."""
        return min([seat.until for seat in self.seats])


Ask = Literal["exit", "speaker", "review", "watch"]
"""The kind of a decision: the exit of a node, the next speaker, whether a draft passes, or whether to step in."""


class Asking(Model):
    """A member has to choose one of the options.

    Attributes:
        default: Choice without a valid decision.
        tries: Number of invalid choices that are left; after the last one the default counts.
        refused: The invalid choice that was counted last.
    """

    phase: Literal[Phase.DECIDING] = Phase.DECIDING
    asked: AgentIdField
    about: Ask
    options: tuple[str, ...]
    default: str
    tries: Count
    until: Time
    since: Time
    refused: MessageIdField | None = None


class Waiting(Model):
    """The discussion waits for tasks, or for an answer; then `waiter` has the floor again.

    Attributes:
        phase: `AWAITING_ACKS` until assigned tasks are acknowledged, otherwise until tasks are closed or a question is answered.
        waiter: The member that assigned the tasks, paused, or asked.
        until: Timeout; None for `ASSIGNED`.
        question: The question to the user of the goal; None without one.
    """

    phase: Literal[Phase.AWAITING_ACKS, Phase.ASSIGNED, Phase.PAUSED]
    waiter: AgentIdField
    tasks: tuple[TaskIdField, ...] = ()
    until: Time | None = None
    question: Annotated[Question | None, OMITTED_IF_EMPTY] = None


class Concluding(Model):
    """Only a conclusion by `speaker` is legal. `forced` names the limit that ended the discussion, if any."""

    phase: Literal[Phase.CONCLUDING] = Phase.CONCLUDING
    speaker: AgentIdField
    until: Time
    forced: ForcedReason | None = None
    since: Time


class Elsewhere(Model):
    """The stage of a group in a node that a member does not hear; only views contain it. `until` is the deadline."""

    phase: Literal["elsewhere"] = "elsewhere"
    until: Time


class Ended(Model):
    """No event is legal. `limit` ended the discussion, if the goal was reached nevertheless.

    `degraded` names parts that the conclusion may lack; None if no member was lost.
    """

    phase: Literal["ended"] = "ended"
    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...] = ()
    ended_at: Time
    degraded: Degraded | None = None
    limit: ForcedReason | None = None


Stage = Annotated[Discussing | Gathering | Asking | Waiting | Concluding | Elsewhere | Ended, Field(discriminator="phase")]


def phase_of_end(reason: Reason) -> Phase:
    """Return the phase of a group or goal that has ended."""
    return {Reason.CONCLUDED: Phase.CONCLUDED, Reason.CANCELLED: Phase.CANCELLED}.get(reason, Phase.FAILED)


class Remark(Model):
    """The sketch of a message, and its turn."""

    turn: int
    sketch: Sketch


class Monologue(Model):
    """The messages of a member since any other event, the latest last."""

    by: AgentIdField
    remarks: tuple[Remark, ...]


class Passed(Model):
    """A member that passed its last turn, with the cause, and the time since which the cause holds."""

    agent_id: AgentIdField
    cause: PassCause
    since: Time


class GroupState(GoalReference):
    """The state of a group.

    Attributes:
        turn: Number of the current floor grant, 1 for the first; every grant has its own number.
        turns_taken: Messages of this group that used a turn.
        nested_turns: Turns of nested groups that have ended.
        loans: Shares of the budget of nested groups that have not ended.
        spent: Usage of members, tasks, and nested groups that have ended.
        silences: Floor timeouts in a row.
        tasks: Open and waiting tasks, and the last closed ones, in the order of assignment.
        folded: Number of closed tasks that have left the state.
        lacks: Parts that the results of nested groups lack.
        monologue: Messages of the last speaker since any other event; None without any.
        passes: Members that passed since the last message.
        dearest_turn: Tokens of the most expensive turn, in a group with a token budget.
        decisions: What made the decisions, with those of nested groups that have ended.
        ruled: Members that rules lead in a group whose owner a model leads: they get no floor that the owner did not use.
        course: Position in the policy; None in a free group.
        tally: Answers to the last question to several members.
    """

    comm_id: CommIdField
    owner: AgentIdField
    members: Annotated[tuple[Member, ...], Field(max_length=MAX_MEMBERS)]
    limits: Limits
    depth: int
    parent: ParentTask | None
    stage: Stage
    turn: int
    turns_taken: int = 0
    nested_turns: Count = 0
    loans: tuple[Loan, ...] = ()
    spent: Usage = NOTHING
    silences: int = 0
    folded: Count = 0
    lacks: Degraded | None = None
    monologue: Monologue | None = None
    passes: Annotated[tuple[Passed, ...], Field(max_length=MAX_MEMBERS)] = ()
    dearest_turn: Annotated[Count, OMITTED_IF_EMPTY] = 0
    decisions: tuple[Decisions, ...] = ()
    ruled: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()
    course: Annotated[Course | None, OMITTED_IF_EMPTY] = None
    tally: Annotated[Votes | None, OMITTED_IF_EMPTY] = None
    tasks: tuple[Task, ...] = ()

    @property
    def phase(self) -> Phase:
        """The phase as the protocol names it; to a member that hears nothing of it the group is discussing."""
        stage = self.stage
        if isinstance(stage.phase, Phase):
            return stage.phase
        return phase_of_end(stage.reason) if isinstance(stage, Ended) else Phase.DISCUSSING

    @property
    def forced(self) -> ForcedReason | None:
        """The limit that ended the discussion, until its conclusion is stated."""
        return self.stage.forced if isinstance(self.stage, Concluding) else None

    @property
    def floor_holder(self) -> AgentId | None:
        """The only member that may speak now; None if several may speak, or a member has to decide."""
        match self.stage:
            case Discussing(holder=agent) | Concluding(speaker=agent):
                return agent
            case _:
                return None

    @property
    def floor(self) -> tuple[AgentId, ...]:
        """The members that may send messages in the current turn: the floor holder, the open seats, or the deciding member."""
        match self.stage:
            case Discussing(holder=agent) | Concluding(speaker=agent) | Asking(asked=agent):
                return (agent,)
            case Gathering(seats=seats):
                return tuple([seat.agent_id for seat in seats])
            case _:
                return ()

    @property
    def turns_left(self) -> int:
        """The number of turns that are neither used, nor needed for seats, nor lent to nested groups."""
        used = self.turns_taken + self.nested_turns
        if self.loans:
            used += sum([loan.turns for loan in self.loans])
        if isinstance(self.stage, Gathering):
            used += len(self.stage.seats)
        return max(0, self.limits.max_turns - used)

    @property
    def question(self) -> Question | None:
        """The question for whose answer the discussion waits."""
        return self.stage.question if isinstance(self.stage, Waiting) else None

    @property
    def open_tasks(self) -> tuple[OpenTask, ...]:
        """The open tasks, in the order of assignment."""
        return tuple([task for task in self.tasks if isinstance(task, OpenTask)])

    @property
    def unfinished_tasks(self) -> tuple[OpenTask | WaitingTask, ...]:
        """The open and waiting tasks, in the order of assignment. If a task waits, another one is open."""
        return tuple([task for task in self.tasks if not isinstance(task, ClosedTask)])

    def task(self, task_id: TaskId) -> Task | None:
        """Find a task by its id."""
        return next((task for task in self.tasks if task.task_id == task_id), None)

    @property
    def tasks_given(self) -> int:
        """The number of tasks assigned so far."""
        return len(self.tasks) + self.folded

    def knows_task(self, agent_id: AgentId, task: Task) -> bool:
        """Return whether a member knows a task. A member that joined later knows only tasks that all know."""
        return not task.earshot or agent_id in [self.members[number].agent_id for number in task.earshot]

    def task_told_to(self, agent_id: AgentId, task_id: TaskId) -> Task | None:
        """Find a task by its id, if a member knows it."""
        task = self.task(task_id)
        return task if task is not None and self.knows_task(agent_id, task) else None

    def tasks_left(self, agent_id: AgentId) -> tuple[OpenTask | WaitingTask, ...]:
        """Return the unfinished tasks that a member knows."""
        return tuple([task for task in self.unfinished_tasks if self.knows_task(agent_id, task)])

    def may_be_folded(self, task_id: TaskId) -> bool:
        """Return whether a task of this id may have left the state: tasks have left it, and the id names an earlier turn."""
        return self.folded > 0 and 0 < (turn_of_task_id(task_id) or 0) < self.turn

    def loan(self, subgroup: CommId) -> Loan | None:
        """Find the loan of a nested group that has not ended."""
        return next((loan for loan in self.loans if loan.subgroup == subgroup), None)

    @property
    def nested(self) -> tuple[CommId, ...]:
        """Return the nested groups that tasks name: all that have not ended, and the last ended ones."""
        return tuple([task.subgroup for task in self.tasks if not isinstance(task, WaitingTask) and task.subgroup is not None])

    def is_member(self, agent_id: AgentId) -> bool:
        """Return whether the agent belongs to the group, lost or not."""
        return agent_id in [member.agent_id for member in self.members]

    def number_of(self, agent_id: AgentId) -> int:
        """Return the position of a member in the order of joining."""
        return [member.agent_id for member in self.members].index(agent_id)

    def living(self) -> tuple[AgentId, ...]:
        """Return the members with a valid lease that are not removed, in the order of joining."""
        return tuple([member.agent_id for member in self.members if not member.lost and not member.removed])

    @property
    def hearing(self) -> tuple[AgentId, ...]:
        """Return the members that are not removed."""
        return tuple([member.agent_id for member in self.members if not member.removed])

    def willing(self) -> tuple[AgentId, ...]:
        """Return the living members that may get a floor that another member did not use."""
        living = self.living()
        return tuple([agent_id for agent_id in living if agent_id not in self.ruled]) if self.owner in living else living

    def patience_of(self, agent_id: AgentId) -> timedelta | None:
        """Return the patience on a member's card; None without one."""
        for member in self.members:
            if member.agent_id == agent_id:
                return member.patience
        return None

    def lease_of(self, assignee: AgentId) -> timedelta:
        """Return how long a member may work on a task without a report."""
        return self.patience_of(assignee) or self.limits.task_lease

    def reachable(self, at: datetime, but: AgentId | None = None) -> tuple[AgentId, ...]:
        """Return the other living members, and those lost for less than a floor timeout, which may be named as speaker or assignee.

        A member that is lost so briefly has usually returned before its turn.
        """
        long_ago = at - self.limits.floor_timeout
        return tuple(
            [
                one.agent_id
                for one in self.members
                if one.agent_id != but
                and not one.removed
                and (not one.lost or (one.lost_at is not None and one.lost_at > long_ago))
            ]
        )
