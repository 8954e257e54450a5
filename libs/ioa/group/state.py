"""The state of a group: the data of its last log entry, from which the next step is computed.

The state is computed from the log. It contains no messages except the conclusion of an ended group, so that it stays small in a
long conversation. Data of a single phase is in that phase's stage class.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from ioa.protocol.cards import AgentCard, Patience
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import Artifact, Degraded, ForcedReason, GoalReference, Labels, Reason, RepetitionRule
from ioa.protocol.ids import AgentId, AgentIdField, CommId, CommIdField, MessageIdField, TaskId, TaskIdField, turn_of_task_id
from ioa.protocol.messages import PassCause, Phase, Question, TaskOutcome
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.policy import MAX_FIELDS, MAX_NODES, MAX_ROLES, Casting, FieldValue, Form, Name, Policy
from ioa.protocol.teams.stored_teams import ReferenceField
from ioa.protocol.usage import NOTHING, Count, Usage

MAX_MEMBERS = 64
"""Maximum members per group, and maximum length of each list of members in an entry: readers look up each of them."""
MAX_BRIEF_CHARS = 20_000

Sketch = Annotated[str, Field(max_length=16)]
"""Sketch of a text, by which texts are compared; see `ioa.repetition`."""

Timeout = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=365))]


class Limits(Model):
    """The limits of a group. Turns, tokens and cost are for the group and all groups nested in it together.

    Attributes:
        max_turns: Maximum messages of the discussion, without the announcement and the conclusion.
        max_tokens: Maximum tokens of language models; None without a limit.
        max_cost_micros: Maximum cost, in millionths of the currency; None without a limit.
        max_depth: Maximum depth of nested groups; the root group has depth 0.
        deadline: Time at which the group ends in any phase.
        floor_timeout: Maximum silence of a member with the floor.
        task_lease: Maximum time of an open task without progress.
        pause_timeout: Maximum length of a pause.
        conclusion_timeout: Maximum silence of the concluding speaker.
        repetition: Whether a member may repeat its words without any event in between.
        model_patience: Maximum time in which the models of all members are unavailable.
    """

    max_turns: Annotated[int, Field(ge=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_cost_micros: Annotated[int, Field(ge=1)] | None = None
    max_depth: Annotated[int, Field(ge=0)] = 3
    deadline: Time
    floor_timeout: Timeout = timedelta(seconds=60)
    task_lease: Timeout = timedelta(seconds=30)
    pause_timeout: Timeout = timedelta(minutes=10)
    conclusion_timeout: Timeout = timedelta(seconds=60)
    repetition: RepetitionRule = RepetitionRule.VERBATIM
    model_patience: Timeout = timedelta(minutes=5)


class ParentTask(Model):
    """The task of another group that this group serves."""

    comm_id: CommIdField
    task_id: TaskIdField


class PlannedTask(Model):
    """A task that its planner intends to assign after the tasks in `uses`. It is a hint in the record, and is not enforced.

    `others` are further assignees in case of a failure, the best first.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    task_desc: str
    uses: Annotated[tuple[TaskIdField, ...], Field(max_length=MAX_MEMBERS)] = ()
    others: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()


class Charter(GoalReference):
    """The setup of a group, which never changes (paper, figure 7: goal, team_members, team_up_depth, max_turns).

    `brief` describes the goal to a nested group; its `inputs` are the files of the goal and of the results that its task uses.
    `user` is the owner of the goal. `policy` leads the group, with `cast` for its roles; a group without one is free. `labels`
    are the goal's.
    """

    comm_id: CommIdField
    goal: str
    owner: AgentIdField
    team_members: Annotated[tuple[AgentCard, ...], Field(min_length=1, max_length=MAX_MEMBERS)]
    team_up_depth: Annotated[int, Field(ge=0)]
    limits: Limits
    inputs: tuple[Artifact, ...] = ()
    parent: ParentTask | None = None
    plan: tuple[PlannedTask, ...] = ()
    traceparent: str = ""
    brief: Annotated[str, Field(max_length=MAX_BRIEF_CHARS)] = ""
    policy: Annotated[Policy | None, OMITTED_IF_EMPTY] = None
    cast: Annotated[tuple[Casting, ...], Field(max_length=MAX_ROLES), OMITTED_IF_EMPTY] = ()
    labels: Labels = Field(default_factory=dict)

    @model_validator(mode="after")
    def _members_differ_and_roles_are_cast(self) -> Charter:
        roles = () if self.policy is None else [role.name for role in self.policy.roles]
        if [casting.role for casting in self.cast] != [*roles]:
            raise ValueError("the cast names each role of the policy once, in their order")
        members = {card.agent_id for card in self.team_members}
        if strangers := {agent for casting in self.cast for agent in casting.members} - members:
            raise ValueError(f"the cast names {', '.join(sorted(strangers))}, who are not in the team")
        if len(members) < len(self.team_members):
            raise ValueError("the team names one member twice")
        return self


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


class Choices(NamedTuple):
    """The members that a speaker may name, how many of them in parallel, and its exits."""

    next_speakers: tuple[AgentId, ...]
    most_named: int
    go: tuple[str, ...]


class Draft(Model):
    """A message that only its author and reviewers have heard.

    Attributes:
        by: Number of the author.
        tries: Number of drafts of this turn that may still be rejected.
        passed: Whether the author has to send it again, unchanged, to all members.
    """

    by: Count
    digest: str
    tries: Count
    passed: bool = False


class Next(NamedTuple):
    """The choices of a message, while a member is asked before they are applied.

    `go` is the chosen exit. The `named` members, by number, speak in parallel if there are `several`. `gathered` is whether several
    members have spoken in parallel.
    """

    go: Name | None = None
    named: tuple[Count, ...] = ()
    several: bool = False
    question: Form = ()
    gathered: bool = False


class Version(NamedTuple):
    """The last version of a text on the board, with the number of its author; the message that wrote it contains the text."""

    name: Name
    version: Count
    by: Count


class Watch(Model):
    """The watchers that are asked before the group goes on, by their numbers in the policy; the first one is asked now."""

    due: tuple[Count, ...]
    then: Next


class Course(Model):
    """The position of a group in its policy. Nodes, roles and members are identified by their numbers.

    Attributes:
        policy: Digest of the policy.
        leader: Role that concludes; None for the owner.
        visits: Number of entries into each node.
        turns: Turns of this visit, with silent ones.
        taken: Turns of each member in this visit.
        last: Speaker of the last turn of this visit.
        opening: Whether the floor holder has to open the node with given words.
        total: Turns of each member in the whole group; empty if the policy does not depend on them.
        told: Values of this visit: for each field on which an exit depends, the members with their values, in the order of the
            messages. Members are given by number, options by position.
        nominated: Member that the last speaker named, while another member is asked.
        offered: Choices of the floor holder, as the router computed them. Only views contain it, if they do not show its reasons.
        draft: The message that has not passed its review, or was not sent again.
        watch: The watchers that are asked before the group goes on.
        entered: Turn of the last entry into each node; empty if no node can be restarted.
        kept: Turns of the last visit of each node; empty if no node continues its count.
        agenda: Nodes that are entered later, because a node is left by all of its exits, in their order.
        done: Nodes that were left and neither entered nor forked to since, if a node waits for them.
        struck: First and last turns of struck parts, since a node was restarted.
        board: Versions of texts, in the order in which the texts were first written.
    """

    policy: str
    leader: Count | None = None
    node: Count
    visits: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES)]
    turns: Count = 0
    taken: Annotated[tuple[Count, ...], Field(max_length=MAX_MEMBERS)] = ()
    last: Count | None = None
    opening: bool = False
    total: Annotated[tuple[Count, ...], Field(max_length=MAX_MEMBERS)] = ()
    told: Annotated[tuple[tuple[tuple[Count, FieldValue], ...], ...], Field(max_length=MAX_FIELDS), OMITTED_IF_EMPTY] = ()
    nominated: Annotated[Count | None, Field(exclude_if=lambda value: value is None)] = None
    offered: Annotated[Choices | None, OMITTED_IF_EMPTY] = None
    draft: Annotated[Draft | None, OMITTED_IF_EMPTY] = None
    watch: Annotated[Watch | None, OMITTED_IF_EMPTY] = None
    entered: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    kept: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    agenda: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    done: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES), OMITTED_IF_EMPTY] = ()
    struck: Annotated[tuple[tuple[Count, Count], ...], OMITTED_IF_EMPTY] = ()
    board: Annotated[tuple[Version, ...], OMITTED_IF_EMPTY] = ()


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

    def next_deadline(self) -> datetime | None:
        """Return the time at which a timer must check the group; None after its end."""
        if isinstance(self.stage, Ended):
            return None
        times = [self.limits.deadline]
        for task in self.open_tasks:
            times += (task.lease_until,) if task.deadline is None else (task.lease_until, task.deadline)
            times += [] if task.question is None else [task.question.until]
        if self.stage.until is not None:
            times.append(self.stage.until)
        return min(times)
