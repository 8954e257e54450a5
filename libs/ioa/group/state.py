"""The state of a group: what the last entry of its log carries, and all that the next step needs.

The state is a fold over the log. It holds no prose except the conclusion of a group that has ended, so that it stays small
however long the conversation gets. What belongs to one phase only lives in that phase's stage class.

What is in a log must be read for as long as the log is kept: new fields have defaults, and a default never changes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from ioa.protocol.cards import AgentCard, Patience
from ioa.protocol.decisions import Decisions
from ioa.protocol.goals import Artifact, Degraded, ForcedReason, Reason, RepetitionRule
from ioa.protocol.ids import (
    LOCAL,
    AgentId,
    AgentIdField,
    CommId,
    CommIdField,
    GoalIdField,
    GoalName,
    MessageIdField,
    TaskId,
    TaskIdField,
    UserIdField,
    turn_of_task_id,
)
from ioa.protocol.labels import Labels
from ioa.protocol.messages import PassCause, Phase, TaskOutcome
from ioa.protocol.model import Model, Time
from ioa.protocol.named_teams import ReferenceField
from ioa.protocol.policy import MAX_FIELDS, MAX_NODES, MAX_ROLES, Casting, FieldValue, Form, Name, Policy
from ioa.protocol.questions import Question
from ioa.protocol.usage import NOTHING, Count, Usage

MAX_MEMBERS = 64
"""How many a group has, at any time. What names members holds no more: with thousands of them an entry that fits into a message
takes a reader seconds, who looks up each of them in the others."""
MAX_BRIEF_CHARS = 20_000

Sketch = Annotated[str, Field(max_length=16)]
"""What texts are compared by; see `ioa.repetition`."""

Timeout = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=365))]


class Limits(Model):
    """What the router enforces. Turns, tokens and cost are for the group and all teams nested in it together.

    Attributes:
        max_turns: How many messages the discussion may take; announcing and stating the conclusion is not counted.
        max_tokens: How many tokens of language models may be used up; None is no bound.
        max_cost_micros: What may be spent, in millionths of the currency; None is no bound.
        max_depth: How deep teams may nest; the root group has depth 0.
        deadline: When the group ends, whatever it is doing.
        floor_timeout: How long a floor holder may stay silent.
        task_lease: How long an open task may go without progress.
        pause_timeout: How long a pause may last.
        conclusion_timeout: How long the concluding speaker may stay silent.
        repetition: Whether a member may say the same again with nothing new in between.
        model_patience: How long the models of all members may be away before the group ends.
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
    """A task its planner intends to assign, to be done once the tasks in `uses` are. A hint in the record, never enforced.

    `others` are who is to be given it if its assignee fails, the best first.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    task_desc: str
    uses: tuple[TaskIdField, ...] = ()
    others: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()


class Charter(Model):
    """What a group is set up with; it never changes (paper, figure 7: goal, team_members, team_up_depth, max_turns).

    `brief` tells a nested team for whom and on what ground it works; its `inputs` are the goal's files, and those of the results
    that its task uses. `user` is whose goal it works for. `policy` leads the
    group, with `cast` for its roles; without one the group is free. `labels` are the goal's.
    """

    comm_id: CommIdField
    goal_id: GoalIdField
    user: UserIdField = LOCAL
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
    policy: Annotated[Policy | None, Field(exclude_if=operator.not_)] = None
    cast: Annotated[tuple[Casting, ...], Field(max_length=MAX_ROLES, exclude_if=operator.not_)] = ()
    labels: Labels = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_role_is_cast(self) -> Charter:
        roles = () if self.policy is None else [role.name for role in self.policy.roles]
        if [casting.role for casting in self.cast] != [*roles]:
            raise ValueError("the cast names each role of the policy once, in their order")
        members = {card.agent_id for card in self.team_members}
        strangers = {agent for casting in self.cast for agent in casting.members if agent not in members}
        if strangers:
            raise ValueError(f"the cast names {', '.join(sorted(strangers))}, who are not in the team")
        return self

    @model_validator(mode="after")
    def _members_differ(self) -> Charter:
        ids = [card.agent_id for card in self.team_members]
        if len(set(ids)) != len(ids):
            raise ValueError("the team names one member twice")
        return self


class Member(Model):
    """A member and whether its lease still stands; if not, since when. `patience` is that of its card.

    `roles` are the numbers of those it plays in the group's policy. Who is removed by it has no part any more, and who is `human`
    by it is never lost.
    """

    agent_id: AgentIdField
    lost: bool = False
    lost_at: Time | None = None
    patience: Patience | None = None
    roles: Annotated[tuple[int, ...], Field(max_length=MAX_ROLES, exclude_if=operator.not_)] = ()
    removed: Annotated[bool, Field(exclude_if=operator.not_)] = False
    human: Annotated[bool, Field(exclude_if=operator.not_)] = False

    @property
    def takes_part(self) -> bool:
        """Whether it can speak: its lease stands, and nobody has removed it."""
        return not self.lost and not self.removed


class TaskMode(StrEnum):
    """Whether the discussion waits for a task."""

    SYNC = "sync"
    ASYNC = "async"


Earshot = Annotated[tuple[Count, ...], Field(max_length=MAX_MEMBERS, exclude_if=operator.not_)]
"""The members that are told of a task, by number: who heard it being given out, and who does it. Empty where all hear all."""


TeamOfTask = Annotated[ReferenceField | None, Field(exclude_if=operator.not_)]
"""The stored team that a task names, if it names one."""


class OfTask(Question):
    """What a running task asks, or the nested team that serves it.

    Attributes:
        number: Which question of the task it is, with those of the team that serves it.
        turn: The turn in which the nested team asks; 0 if the task asks itself.
        role: As whom somebody is asked; None: as who gave out the task.
        answer: What was answered to a nested team, which may not have been told yet; None while nobody has.
        by: Who has answered that.
    """

    number: Annotated[int, Field(ge=1)]
    turn: Annotated[Count, Field(exclude_if=operator.not_)] = 0
    role: Annotated[Name | None, Field(exclude_if=operator.not_)] = None
    answer: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    by: Annotated[str, Field(exclude_if=operator.not_)] = ""


class UnfinishedTask(Model):
    """A task that is not closed.

    Attributes:
        sketch: Sketch of the task's text and of the tasks that it uses; empty if texts are not compared.
        earshot: The members that know the task; see `Earshot`.
        team: The stored team that serves the task.
    """

    task_id: TaskIdField
    assignee: AgentIdField
    assigner: AgentIdField
    mode: TaskMode
    turn: int
    subgroup: Annotated[CommIdField | None, Field(exclude_if=lambda value: value is None)] = None
    sketch: Sketch = ""
    earshot: Earshot = ()
    team: TeamOfTask = None

    def closed(self, outcome: TaskOutcome, why: str = "") -> ClosedTask:
        """Return this task, ended."""
        known = {name: getattr(self, name) for name in ("task_id", "assignee", "turn", "subgroup", "earshot")}
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
        of_team: The question of the nested group that serves it, and the answer, which that group may not have received yet.
    """

    status: Literal["open"] = "open"
    lease_until: Time
    progress: int = 0
    suspect: bool = False
    deadline: Time | None = None
    spent: Usage = NOTHING
    asked: Annotated[Count, Field(exclude_if=operator.not_)] = 0
    question: Annotated[OfTask | None, Field(exclude_if=lambda value: value is None)] = None
    of_team: Annotated[OfTask | None, Field(exclude_if=lambda value: value is None)] = None

    @property
    def questions(self) -> tuple[OfTask, ...]:
        """The questions of the task and of the group that serves it that wait for an answer."""
        if not self.asked:
            return ()
        return tuple([one for one in (self.question, self.of_team) if one is not None and one.answer is None])


class WaitingTask(UnfinishedTask):
    """A task that starts when the tasks in `after` are done. It has no lease, and its time has not begun.

    Attributes:
        timeout: Maximum time of the task from its start.
    """

    status: Literal["waiting"] = "waiting"
    after: tuple[TaskIdField, ...] = ()
    timeout: Timeout | None = None


class ClosedTask(Model):
    """A task that has ended, once and for all; only what is done may be rejected yet.

    Attributes:
        turn: When it was given out; 0 where its id tells it.
        why: The reason if it is not done.
    """

    status: Literal["closed"] = "closed"
    task_id: TaskIdField
    assignee: AgentIdField
    turn: Annotated[Count, Field(exclude_if=operator.not_)] = 0
    outcome: TaskOutcome
    why: str = ""
    subgroup: CommIdField | None = None
    earshot: Earshot = ()

    @property
    def given_in(self) -> int:
        """The turn in which it was given out."""
        return self.turn or turn_of_task_id(self.task_id) or 0


class FoldedTasks(Model):
    """How many of a member's tasks have ended and left the state, by how they ended; those of one earshot."""

    assignee: AgentIdField
    done: Count = 0
    failed: Count = 0
    cancelled: Count = 0
    rejected: Count = 0
    earshot: Earshot = ()

    @property
    def total(self) -> int:
        """All of them."""
        return self.done + self.failed + self.cancelled + self.rejected


Task = Annotated[OpenTask | WaitingTask | ClosedTask, Field(discriminator="status")]


class Loan(Model):
    """What a nested team may use up of its parent's budget, until it has ended and the loan is taken back. None is no bound."""

    subgroup: CommIdField
    turns: Annotated[int, Field(ge=1)]
    tokens: Annotated[int, Field(ge=1)] | None
    cost_micros: Annotated[int, Field(ge=1)] | None
    deadline: Time


class Discussing(Model):
    """`holder` has the floor for turn `GroupState.turn`, from `since` until `until`.

    `repeated` is a message of this turn that was refused.
    """

    phase: Literal[Phase.DISCUSSING] = Phase.DISCUSSING
    holder: AgentIdField
    until: Time
    repeated: MessageIdField | None = None
    since: Time


class FieldVotes(Model):
    """What several members have filled a field in with.

    Attributes:
        counts: How many chose what: each option in its order, yes and no, members in the order in which they were named first.
        count: How many filled it in.
        lowest: The least number.
        highest: The greatest one.
        total: All numbers together.
    """

    name: Name
    counts: Annotated[tuple[tuple[str, Count], ...], Field(max_length=MAX_MEMBERS)] = ()
    count: Count = 0
    lowest: int | None = None
    highest: int | None = None
    total: int | None = None


class Votes(Model):
    """What came of a question that several members were asked side by side.

    Attributes:
        turn: The turn in which they answered.
        by: Who asked.
        fields: What was filled in, a field each.
        answered: How many answered.
        silent: Who did not.
    """

    turn: int
    by: AgentIdField
    fields: Annotated[tuple[FieldVotes, ...], Field(max_length=MAX_FIELDS)] = ()
    answered: Count = 0
    silent: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()


class Seat(Model):
    """A member that is to speak beside others, and until when."""

    agent_id: AgentIdField
    until: Time


class Gathering(Model):
    """Several members speak side by side, once each, all for turn `GroupState.turn`.

    Attributes:
        seats: Who has not spoken yet.
        votes: What came of it so far, where a member has asked them: it gets the floor back. None where the policy has.
        form: What that member has asked.
        away: Whose models are away, and who are asked again.
        begun: The turn in which the first of them spoke, if who was away is asked again and must not read what they said.
    """

    phase: Literal[Phase.GATHERING] = Phase.GATHERING
    seats: Annotated[tuple[Seat, ...], Field(max_length=MAX_MEMBERS)]
    since: Time
    votes: Votes | None = None
    form: Form = ()
    away: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()
    begun: Annotated[Count, Field(exclude_if=operator.not_)] = 0

    @property
    def until(self) -> datetime:
        """When the next seat's time is up."""
        return min([seat.until for seat in self.seats])


Ask = Literal["exit", "speaker", "review", "watch"]
"""What somebody is asked to decide."""


class Asking(Model):
    """A member is to choose one of the options.

    Attributes:
        about: Whether it chooses the way out of a node, who speaks next, whether a draft is passed, or whether to step in.
        default: What stands if it does not choose.
        tries: How many wrong choices it has left; the last of them leaves the default.
        refused: The wrong choice that was counted last.
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
        tasks: The tasks.
        until: Timeout; None for `ASSIGNED`.
        question: The question to the user of the goal, or in a nested group to the assigner of its task; None without one.
    """

    phase: Literal[Phase.AWAITING_ACKS, Phase.ASSIGNED, Phase.PAUSED]
    waiter: AgentIdField
    tasks: tuple[TaskIdField, ...] = ()
    until: Time | None = None
    question: Annotated[Question | None, Field(exclude_if=lambda value: value is None)] = None


class Concluding(Model):
    """Only a conclusion by `speaker` is legal. `forced` names the rule that cut the discussion short, if one did."""

    phase: Literal[Phase.CONCLUDING] = Phase.CONCLUDING
    speaker: AgentIdField
    until: Time
    forced: ForcedReason | None = None
    since: Time


class Elsewhere(Model):
    """The group is where a member hears nothing; only what members are shown holds it. `until` is when it moves on by itself."""

    phase: Literal["elsewhere"] = "elsewhere"
    until: Time


class Ended(Model):
    """Nothing can happen any more.

    Attributes:
        degraded: What the conclusion may lack; None if no member was lost.
        limit: What cut the discussion short, if the goal was reached nevertheless.
    """

    phase: Literal["ended"] = "ended"
    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...] = ()
    ended_at: Time
    degraded: Degraded | None = None
    limit: ForcedReason | None = None


Stage = Annotated[
    Discussing | Gathering | Asking | Waiting | Concluding | Elsewhere | Ended,
    Field(discriminator="phase"),
]


_PHASE_OF_END = {Reason.CONCLUDED: Phase.CONCLUDED, Reason.CANCELLED: Phase.CANCELLED}
"""Every other reason is a failure."""


class Remark(Model):
    """What was said in a turn."""

    turn: int
    sketch: Sketch


class Monologue(Model):
    """What one member has said since anything else happened, the latest last."""

    by: AgentIdField
    remarks: tuple[Remark, ...]


class Passed(Model):
    """A member that had nothing to say when it was last asked, why, and since when it is so."""

    agent_id: AgentIdField
    cause: PassCause
    since: Time


class Choices(NamedTuple):
    """Whom a speaker may name, how many of them at once, and where it may lead the group."""

    next_speakers: tuple[AgentId, ...]
    most_named: int
    go: tuple[str, ...]


class Draft(Model):
    """What the next speaker has said, and only those that review it have heard.

    Attributes:
        by: The number of the speaker.
        digest: Tells it from all else that could be said.
        tries: How many drafts of this turn may still be rejected.
        passed: Whether it is to be said now, as it is, to everybody.
    """

    by: Count
    digest: str
    tries: Count
    passed: bool = False


class Next(NamedTuple):
    """What a message has chosen, while somebody is asked before it is done.

    Attributes:
        go: The way out that its speaker has chosen.
        named: Whom it has named, by number.
        several: Whether they are to speak side by side.
        question: What they are asked.
        gathered: Whether it is what several have said side by side.
    """

    go: Name | None = None
    named: tuple[Count, ...] = ()
    several: bool = False
    question: Form = ()
    gathered: bool = False


class Version(NamedTuple):
    """The last version of a thing on the board; its words stand in the message that has written it.

    Attributes:
        name: What it is called.
        version: How often it was written.
        by: The number of the member that has written it last.
    """

    name: Name
    version: Count
    by: Count


class Watch(Model):
    """The watchers that are to be asked before the group goes on, by their numbers in the policy; the first of them is now."""

    due: tuple[Count, ...]
    then: Next


class Course(Model):
    """Where a group stands in its policy. Nodes and roles are told by their numbers in it, members by theirs in the group.

    Attributes:
        policy: The digest of the policy.
        leader: The role that concludes; None is the owner.
        node: Where the group is.
        visits: How often each node was entered.
        turns: The turns of this visit, silent ones too.
        taken: The same of each member.
        last: Who had the last turn of this visit.
        opening: Whether the floor is to open the node in given words.
        total: The turns of each member in the whole group; empty if nothing in the policy depends on them.
        told: What members have filled in, in this visit: for each field that an exit of the node depends on the members with their
            values, in the order of telling. A member is told by its number, an option by its place.
        nominated: Whom the last speaker named, while somebody is asked.
        offered: What the floor holder may choose, as the router found it: the members that it may name, and the ways out. Only what
            members are shown holds it, where what they see does not tell.
        draft: What was said and is not passed yet, or not said again.
        watch: Who is asked before the group goes on.
        entered: The turn in which each node was entered last; empty if none is begun anew.
        struck: From which to which turn what was said is struck, since a node was begun anew.
        board: What members have written, in the order in which each thing was written first.
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
    told: Annotated[tuple[tuple[tuple[Count, FieldValue], ...], ...], Field(max_length=MAX_FIELDS, exclude_if=operator.not_)] = ()
    nominated: Annotated[Count | None, Field(exclude_if=lambda value: value is None)] = None
    offered: Annotated[Choices | None, Field(exclude_if=lambda value: value is None)] = None
    draft: Annotated[Draft | None, Field(exclude_if=operator.not_)] = None
    watch: Annotated[Watch | None, Field(exclude_if=operator.not_)] = None
    entered: Annotated[tuple[Count, ...], Field(max_length=MAX_NODES, exclude_if=operator.not_)] = ()
    struck: Annotated[tuple[tuple[Count, Count], ...], Field(exclude_if=operator.not_)] = ()
    board: Annotated[tuple[Version, ...], Field(exclude_if=operator.not_)] = ()


class GroupState(Model):
    """Where a group stands.

    Attributes:
        user: Whose goal the group works for.
        turn: The number of the current floor grant, 1 for the first; every grant has a number of its own.
        turns_taken: Messages accepted here that used up a turn.
        nested_turns: The same of the nested teams that have ended.
        loans: What nested teams that have not ended may still use.
        spent: What members and tasks have cost, nested teams that have ended included.
        silences: Floor timeouts in a row; when there were enough for every member, the group fails.
        tasks: The tasks that are open or waiting, and the last of those that are closed, in the order they were given out.
        folded: How many tasks have left the state, by assignee.
        lacks: What was missing in the conclusions of nested teams that are the results of tasks here.
        monologue: What the last speaker has said since anything else happened; None if nothing.
        passes: Who passed the floor on since somebody spoke.
        decisions: Who has decided what was said, in nested teams that have ended too.
        ruled: Members that are led by rules in a group whose owner is led by a model: what it did not say they do not say for it.
        course: Where it stands in its policy; None in a free group.
        tally: What came of the last question that several members were asked side by side.
        dearest_turn: The tokens of the dearest message of a floor holder, in a group with a token budget.
    """

    comm_id: CommIdField
    goal_id: GoalIdField
    user: UserIdField = LOCAL
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
    folded: tuple[FoldedTasks, ...] = ()
    lacks: Degraded | None = None
    monologue: Monologue | None = None
    passes: Annotated[tuple[Passed, ...], Field(max_length=MAX_MEMBERS)] = ()
    decisions: tuple[Decisions, ...] = ()
    ruled: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)] = ()
    course: Annotated[Course | None, Field(exclude_if=operator.not_)] = None
    tally: Annotated[Votes | None, Field(exclude_if=operator.not_)] = None
    dearest_turn: Annotated[Count, Field(exclude_if=operator.not_)] = 0
    tasks: tuple[Task, ...] = ()

    @property
    def goal_name(self) -> GoalName:
        """The goal that the group works for."""
        return GoalName(self.user, self.goal_id)

    @property
    def phase(self) -> Phase:
        """The phase as the protocol names it; to who hears nothing of it the group is discussing."""
        stage = self.stage
        if isinstance(stage, Ended):
            return _PHASE_OF_END.get(stage.reason, Phase.FAILED)
        return Phase.DISCUSSING if isinstance(stage, Elsewhere) else stage.phase

    @property
    def forced(self) -> ForcedReason | None:
        """The rule that cut the discussion short, while its conclusion is still to be stated."""
        return self.stage.forced if isinstance(self.stage, Concluding) else None

    @property
    def floor_holder(self) -> AgentId | None:
        """Who may speak now and nobody else, of its own accord; None also where several may, and where somebody is to decide."""
        match self.stage:
            case Discussing(holder=agent) | Concluding(speaker=agent):
                return agent
            case _:
                return None

    @property
    def floor(self) -> tuple[AgentId, ...]:
        """Who may say something under the current turn: the floor holder, the open seats, or who is to decide."""
        match self.stage:
            case Discussing(holder=agent) | Concluding(speaker=agent) | Asking(asked=agent):
                return (agent,)
            case Gathering(seats=seats):
                return tuple([seat.agent_id for seat in seats])
            case _:
                return ()

    @property
    def turns_left(self) -> int:
        """How many turns nobody has used, has a seat for, or was lent as a nested team."""
        used = self.turns_taken + self.nested_turns + sum([loan.turns for loan in self.loans])
        if isinstance(self.stage, Gathering):
            used += len(self.stage.seats)
        return max(0, self.limits.max_turns - used)

    @property
    def question(self) -> Question | None:
        """The question for whose answer the discussion waits."""
        return self.stage.question if isinstance(self.stage, Waiting) else None

    @property
    def open_tasks(self) -> tuple[OpenTask, ...]:
        """The tasks that their assignees work on, in the order they were given out."""
        return tuple([task for task in self.tasks if isinstance(task, OpenTask)])

    @property
    def unfinished_tasks(self) -> tuple[OpenTask | WaitingTask, ...]:
        """The tasks that are not closed yet, open or waiting, in the order they were given out. If one waits, one is open."""
        return tuple([task for task in self.tasks if not isinstance(task, ClosedTask)])

    def task(self, task_id: TaskId) -> Task | None:
        """Find a task by its id."""
        return next((task for task in self.tasks if task.task_id == task_id), None)

    @property
    def tasks_given(self) -> int:
        """How many tasks were given out so far."""
        return len(self.tasks) + sum([folded.total for folded in self.folded])

    def is_told_of(self, agent_id: AgentId, task: Task | FoldedTasks) -> bool:
        """Whether a member is told of a task; who joins later is so only of what all are."""
        return self.telling(agent_id)(task)

    def telling(self, agent_id: AgentId) -> Callable[[Task | FoldedTasks], bool]:
        """Return what says whether a member is told of a task, for who asks of many: to look a member up takes longest."""
        number = self.number_of(agent_id) if self.is_member(agent_id) else None
        return lambda task: not task.earshot or number in task.earshot

    def task_told_to(self, agent_id: AgentId, task_id: TaskId) -> Task | None:
        """Find a task by its id, if a member is told of it."""
        task = self.task(task_id)
        return task if task is not None and self.is_told_of(agent_id, task) else None

    def tasks_left(self, agent_id: AgentId) -> tuple[OpenTask | WaitingTask, ...]:
        """Return the tasks that are not closed yet and that a member is told of."""
        return tuple(filter(self.telling(agent_id), self.unfinished_tasks))

    def is_folded(self, task_id: TaskId, to: AgentId | None = None) -> bool:
        """Whether a task may have been given out, and closed, and have left the state since.

        An id begins with the turn in which it is given out, so what is of an earlier turn and not here is taken for folded. With
        `to` it is what that member can know, to whom a task that it is not told of is none.
        """
        if not any(map(self.telling(to), self.folded) if to is not None else self.folded):
            return False
        known = self.task(task_id) if to is None else self.task_told_to(to, task_id)
        return known is None and self.is_earlier(task_id)

    def is_earlier(self, task_id: TaskId) -> bool:
        """Whether an id is that of a task of an earlier turn."""
        turn = turn_of_task_id(task_id)
        return turn is not None and 0 < turn < self.turn

    def loan(self, subgroup: CommId) -> Loan | None:
        """Find what a nested team was lent and has not given back."""
        return next((loan for loan in self.loans if loan.subgroup == subgroup), None)

    @property
    def nested(self) -> tuple[CommId, ...]:
        """Return the nested teams that tasks name: all that have not ended, and those that ended last."""
        return tuple([task.subgroup for task in self.tasks if not isinstance(task, WaitingTask) and task.subgroup is not None])

    def is_member(self, agent_id: AgentId) -> bool:
        """Whether the agent belongs to the group, lost or not."""
        return agent_id in [member.agent_id for member in self.members]

    def number_of(self, agent_id: AgentId) -> int:
        """Return the place of a member in the order of joining."""
        return [member.agent_id for member in self.members].index(agent_id)

    def living(self) -> tuple[AgentId, ...]:
        """Return the members whose lease stands and who are not removed, in the order they joined."""
        return tuple([member.agent_id for member in self.members if not member.lost and not member.removed])

    @property
    def hearing(self) -> tuple[AgentId, ...]:
        """Return who is told what happens next: everybody who is not removed."""
        return tuple([member.agent_id for member in self.members if not member.removed])

    def willing(self) -> tuple[AgentId, ...]:
        """Return the living members to whom the floor may go that another one has not used."""
        living = self.living()
        return tuple([agent_id for agent_id in living if agent_id not in self.ruled]) if self.owner in living else living

    def patience_of(self, agent_id: AgentId) -> timedelta | None:
        """How long a member is waited for at a time; None if its card does not say."""
        for member in self.members:
            if member.agent_id == agent_id:
                return member.patience
        return None

    def lease_of(self, assignee: AgentId) -> timedelta:
        """How long a member may work on a task without a report."""
        return self.patience_of(assignee) or self.limits.task_lease

    def reachable(self, at: datetime) -> tuple[AgentId, ...]:
        """Return the members that may be named next speaker or assignee: the living, and those lost for less than a floor timeout.

        Who is lost so briefly is most often back before it is its turn.
        """
        long_ago = at - self.limits.floor_timeout
        return tuple(
            [
                member.agent_id
                for member in self.members
                if not member.removed and (not member.lost or (member.lost_at is not None and member.lost_at > long_ago))
            ]
        )

    def next_deadline(self) -> datetime | None:
        """When the group must be looked at again if nothing is said; None once it has ended."""
        if isinstance(self.stage, Ended):
            return None
        times = [self.limits.deadline]
        for task in self.open_tasks:
            times += (task.lease_until,) if task.deadline is None else (task.lease_until, task.deadline)
            times += [question.until for question in task.questions]
        if self.stage.until is not None:
            times.append(self.stage.until)
        return min(times)
