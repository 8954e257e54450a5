"""Requests to group setup and the routers, and their answers."""

from __future__ import annotations

import operator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ioa.errors import NotFoundError, PayloadTooLargeError
from ioa.group.events import MAX_WHY_CHARS, EncodedEntry, Entry
from ioa.group.rejection import RejectionCode
from ioa.group.state import MAX_BRIEF_CHARS, MAX_MEMBERS, Charter, GroupState, ParentTask, PlannedTask
from ioa.protocol.cards import abridged
from ioa.protocol.codec import encode, encode_around
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import (
    LOCAL,
    AgentIdField,
    CommId,
    CommIdField,
    GoalIdField,
    GoalName,
    SessionIdField,
    TaskIdField,
    UserIdField,
)
from ioa.protocol.messages import MAX_ARTIFACTS, Phase
from ioa.protocol.model import Instruction, Model, Time
from ioa.protocol.model_calls import ModelCalls
from ioa.protocol.policy import MAX_ROLES, Casting, Name
from ioa.protocol.questions import Answer, AnswerKey
from ioa.protocol.team import TeamField
from ioa.protocol.texts import shortened
from ioa.protocol.tickets import ShownTicket
from ioa.protocol.usage import MAX_COUNT, NOTHING, Count, OverheadField, Usage

Place = Annotated[int, Field(ge=0, le=2**63 - 2)]
"""Where something stands in a stream, or how many there were before it; there is a place behind each."""

_SHORT_CARD_BYTES, _SHORT_GOAL_BYTES = 3_000, 2_000

MAX_PLANNED = 4_096
"""How many names a plan may hold: its tasks, those that they use, and who else is to be given them. A group gives out 256 tasks."""


class LaunchGroup(Instruction):
    """Open the group chat for a goal, or for an open task of another group.

    Launching the same thing again as the same owner gives the same group.
    """

    owner: AgentIdField
    members: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)]
    plan: tuple[PlannedTask, ...] = ()
    goal_id: GoalIdField
    user: UserIdField = LOCAL
    """Whose goal it is."""
    parent: ParentTask | None = None
    goal: str = ""
    """What a nested team is to reach; a goal's own text is on record."""
    usage: Usage = NOTHING
    """What finding the team has cost."""
    overhead: OverheadField = None
    """What of that came to nothing by itself."""
    calls: ModelCalls = ()
    """What a model was asked for it, in order."""
    decided_by: DecidedBy | None = None
    """Who chose the team."""
    session: SessionIdField | None = None
    """Which process asks; one that another process has taken the owner's id from is refused."""
    brief: Annotated[str, Field(max_length=MAX_BRIEF_CHARS)] = ""
    """What a nested team is told of the group that it works for."""
    inputs: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    """The files that a nested team gets besides those of the goal."""
    ticket: ShownTicket = None
    """What the goal was given with; a nested team needs none, since the parent's log says whose task it serves."""
    policy: Annotated[str, Field(max_length=64, exclude_if=operator.not_)] = ""
    """The digest of the policy that the owner has read in its goal, or planned; a release without policies refuses it."""
    cast: Annotated[tuple[Casting, ...], Field(max_length=MAX_ROLES, exclude_if=operator.not_)] = ()
    """Who was found for the roles of the team that name a need; group setup fills the others."""
    team: Annotated[TeamField | None, Field(exclude_if=operator.not_)] = None
    """The team that the owner has planned for a goal that was given none."""

    @model_validator(mode="after")
    def _plan_is_soon_read(self) -> LaunchGroup:
        """Refuse a plan of very many small parts: it stands in the charter, which is read again and again, by every member too."""
        if (named := sum([1 + len(task.uses) + len(task.others) for task in self.plan])) > MAX_PLANNED:
            raise ValueError(f"the plan holds {named:,} names, and {MAX_PLANNED:,} are the most")
        return self

    @property
    def name(self) -> GoalName:
        """The goal."""
        return GoalName(self.user, self.goal_id)


class InviteMember(Instruction):
    """Have an agent join a group, as a member that has the floor wants. Asking again for the same is answered as the first time."""

    comm_id: CommIdField
    by: AgentIdField
    """Who invites."""
    turn: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    """The turn for which it has the floor."""
    agent_id: AgentIdField
    """Who is to join."""
    role: Name | None = None
    """What it is to play under a policy."""
    why: Annotated[str, Field(max_length=MAX_WHY_CHARS)] = ""
    """What it is to do."""
    session: SessionIdField | None = None
    """Which process asks; one that another process has taken the id from is refused."""


class AbandonGoal(Instruction):
    """End a goal for which no group can be opened. `decided_by` is who found that nobody fits."""

    goal_id: GoalIdField
    user: UserIdField = LOCAL
    by: AgentIdField
    reason: Literal[Reason.NO_AGENT, Reason.FAILED, Reason.MODEL_UNAVAILABLE, Reason.BUDGET]
    content: str
    usage: Usage = NOTHING
    calls: ModelCalls = ()
    decided_by: DecidedBy | None = None
    session: SessionIdField | None = None
    ticket: ShownTicket = None
    """What the goal was given with."""

    @property
    def name(self) -> GoalName:
        """The goal."""
        return GoalName(self.user, self.goal_id)


class CancelGoal(Instruction):
    """Cancel a goal, with its group and all nested groups. The subject of the request names the user of the goal."""

    goal_id: GoalIdField
    why: str = ""


class AnswerQuestion(Instruction):
    """Answer what a group asks the user of its goal, or what a task asks. Whose goal it is stands in the subject of the request.

    Attributes:
        turn: The turn in which it was asked; 0 of a task's question.
        task_id: The task that asks.
        number: Which of its questions is meant.
        key: Names the answer, for who may have sent it before and cannot say to which question; empty: nothing does.
    """

    comm_id: CommIdField
    turn: Count = 0
    task_id: TaskIdField | None = None
    number: Count = 0
    answer: Answer
    key: Annotated[AnswerKey, Field(exclude_if=operator.not_)] = ""


def no_group(comm_id: CommId) -> NotFoundError:
    """Say that there is no such group: to who is no member in the same words, so that nobody learns of groups by asking."""
    return NotFoundError(f"There is no group {comm_id}.", hint="Only members are told of a group.")


class GetGroup(Model):
    """Ask where a group stands."""

    comm_id: CommIdField


class GroupStatus(Model):
    """How far a group is, for monitors: nothing in it was said by anybody.

    Attributes:
        turns: Those taken, in nested teams that have ended too.
        deadline: When the group ends at the latest.
        reason: Why it has ended; None while it is open.
        ended_at: When.
    """

    comm_id: CommIdField
    phase: Phase
    turns: int
    max_turns: int
    deadline: Time
    reason: Reason | None = None
    ended_at: Time | None = None


class GroupSnapshot(Model):
    """Where a group stands, and the sequence of the entry that says so. `charter` is None if it was never launched.

    Where both do not fit into one answer, some of the charter is left out, which the group's log has: see `fitting`.
    """

    seq: int
    state: GroupState
    charter: Charter | None

    @property
    def nested(self) -> tuple[CommId, ...]:
        """The teams nested in it that its state names."""
        return self.state.nested


def fitting(standing: GroupSnapshot) -> GroupSnapshot:
    """Leave out of a charter what does not fit into an answer beside where its group stands, which has grown since it was launched.

    At first that is what only its members need: plan, brief, inputs and most of their cards; and if that is not enough, the policy,
    most of the goal's words and all cards but the first. Its labels always stay: they tell who may see it.
    """
    for leave_out in (_for_members, _what_is_long):
        try:
            encode(standing)
        except PayloadTooLargeError:
            charter = standing.charter
            standing = standing if charter is None else standing.model_copy(update={"charter": leave_out(charter)})
        else:
            break
    return standing


def _for_members(charter: Charter) -> Charter:
    cards = tuple([abridged(card, _SHORT_CARD_BYTES) for card in charter.team_members])
    return charter.model_copy(update={"plan": (), "brief": "", "inputs": (), "team_members": cards})


def _what_is_long(charter: Charter) -> Charter:
    left_out = {"policy": None, "cast": (), "team_members": charter.team_members[:1]}
    return charter.model_copy(update={"goal": shortened(charter.goal, _SHORT_GOAL_BYTES), **left_out})


class Sync(Model):
    """Ask for the log entries of a group that lie behind `after`. Only its members are answered.

    With the `ticket` of a goal who was given it is told that another agent has opened its group. `session` is the process that
    asks; None is of a version that does not say.
    """

    comm_id: CommIdField
    agent_id: AgentIdField
    after: Place = 0
    ticket: ShownTicket = None
    session: SessionIdField | None = None


class ListMemberships(Model):
    """Ask which open groups an agent was put into, by the number of the membership, from behind `after` on."""

    agent_id: AgentIdField
    after: Place = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 500


class OpenMembership(Model):
    """A group that an agent was put into and that has not been seen to end. Numbers rise from one membership to the next."""

    comm_id: CommIdField
    number: int


class OpenMemberships(Model):
    """A page of memberships, in the order of their numbers. With `complete` there were no more when it was read."""

    memberships: tuple[OpenMembership, ...]
    complete: bool


class SequencedEntry(Model):
    """A log entry and its place in the total order. Sequences of one group rise but have gaps."""

    seq: int
    previous_seq: int
    entry: Entry


def encode_sequenced(entry: EncodedEntry, *, seq: int, previous_seq: int) -> bytes:
    """Encode a `SequencedEntry` around an entry that is encoded already."""
    return encode_around({"seq": seq, "previous_seq": previous_seq, "entry": None}, entry.data)


class Entries(Model):
    """A page of a log, in order. With `complete` the last entry was the head when it was read.

    `head` is the last sequence of the log. A cursor beyond it is of a log that is gone.
    """

    entries: tuple[SequencedEntry, ...]
    complete: bool
    head: int = 0


class Accepted(Model):
    """The message is in the log at `seq`. `entry` is what the other members are pushed; None if the message was there before."""

    outcome: Literal["accepted"] = "accepted"
    seq: int
    entry: SequencedEntry | None = None


class Rejected(Model):
    """The message is not legal; nothing has changed. `legal` names what the sender could say now."""

    outcome: Literal["rejected"] = "rejected"
    code: RejectionCode
    message: str
    legal: tuple[str, ...] = ()


class SayReply(Model):
    """What became of a message."""

    answer: Annotated[Accepted | Rejected, Field(discriminator="outcome")]


def encode_accepted(entry: EncodedEntry, *, seq: int, previous_seq: int) -> bytes:
    """Encode a `SayReply` that accepts a message, around its entry, which is encoded already."""
    sequenced = {"seq": seq, "previous_seq": previous_seq, "entry": None}
    return encode_around({"answer": {"outcome": "accepted", "seq": seq, "entry": sequenced}}, entry.data)
