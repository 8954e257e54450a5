"""Requests to group setup and the routers, and their replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from ioa.errors import NotFoundError, PayloadTooLargeError
from ioa.group.events import MAX_WHY_CHARS, EncodedEntry, Entry
from ioa.group.rejection import RejectionCode
from ioa.group.state import GroupState, phase_of_end
from ioa.protocol.cards import abridged
from ioa.protocol.codec import encode, encode_around
from ioa.protocol.decisions import DecidedBy, ModelCalls
from ioa.protocol.goals import Artifact, GoalRecord, GoalReference, GoalResult, Reason
from ioa.protocol.ids import AgentIdField, CommId, CommIdField, GoalIdField, GoalName, SessionIdField, TaskIdField
from ioa.protocol.messages import MAX_ARTIFACTS, Answer, AnswerKey, Phase
from ioa.protocol.model import OMITTED_IF_EMPTY, Instruction, Model
from ioa.protocol.policy import Casting
from ioa.protocol.policy_parts import MAX_ROLES, Name
from ioa.protocol.setup.charter import MAX_BRIEF_CHARS, MAX_MEMBERS, Charter, ParentTask, PlannedTask
from ioa.protocol.setup.reads import GoalPart
from ioa.protocol.setup.tickets import ShownTicket
from ioa.protocol.texts import shortened
from ioa.protocol.usage import MAX_COUNT, NOTHING, Count, Usage

Place = Annotated[int, Field(ge=0, le=2**63 - 2)]
"""Position in a stream, or the number of earlier entries."""

_SHORT_CARD_BYTES, _SHORT_GOAL_BYTES = 3_000, 2_000

MAX_PLANNED = 256
"""Maximum tasks of a plan, which every member reads."""


class LaunchGroup(Instruction, GoalReference):
    """Open the group chat for a goal, or for an open task of another group.

    Launching the same thing again as the same owner gives the same group.
    """

    owner: AgentIdField
    members: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)]
    plan: Annotated[tuple[PlannedTask, ...], Field(max_length=MAX_PLANNED)] = ()
    parent: ParentTask | None = None
    goal: str = ""
    """The goal of a nested group; the text of a goal itself is stored."""
    usage: Usage = NOTHING
    """The usage of the search for members."""
    calls: ModelCalls = ()
    """The requests to models, in order."""
    decided_by: DecidedBy | None = None
    session: SessionIdField | None = None
    """The session of the asking process; a replaced session is rejected."""
    brief: Annotated[str, Field(max_length=MAX_BRIEF_CHARS)] = ""
    """A description of the parent group for a nested group."""
    inputs: Annotated[tuple[Artifact, ...], Field(max_length=MAX_ARTIFACTS)] = ()
    """The files of a nested group, in addition to the files of the goal."""
    ticket: ShownTicket = None
    """The ticket of the goal; a nested group needs none, because the log of its parent names its assignee."""
    policy: Annotated[str, Field(max_length=64), OMITTED_IF_EMPTY] = ""
    """The digest of the policy that the owner has read in its goal."""
    cast: Annotated[tuple[Casting, ...], Field(max_length=MAX_ROLES), OMITTED_IF_EMPTY] = ()
    """The holders of roles that need a search; group setup fills the others."""


class InviteMember(Instruction):
    """Add an agent to a group on behalf of a member with the floor. Idempotent."""

    comm_id: CommIdField
    by: AgentIdField
    turn: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    """The turn for which the inviting member has the floor."""
    agent_id: AgentIdField
    role: Name | None = None
    """The role of the agent under a policy; None in a free group."""
    why: Annotated[str, Field(max_length=MAX_WHY_CHARS)] = ""
    session: SessionIdField | None = None
    """The session of the asking process; a replaced session is rejected."""


class AbandonGoal(Instruction, GoalReference):
    """End a goal for which no group can be opened. `decided_by` found no fitting agent."""

    by: AgentIdField
    reason: Literal[Reason.NO_AGENT, Reason.FAILED, Reason.MODEL_UNAVAILABLE, Reason.BUDGET]
    content: str
    usage: Usage = NOTHING
    calls: ModelCalls = ()
    decided_by: DecidedBy | None = None
    session: SessionIdField | None = None
    ticket: ShownTicket = None


class CancelGoal(Instruction):
    """Cancel a goal, with its group and all nested groups. The subject of the request names the user of the goal."""

    goal_id: GoalIdField
    why: str = ""


class AnswerQuestion(Instruction):
    """Answer a question to the user of a goal: of its group in `turn`, or question `number` of the task `task_id`.

    The subject of the request contains the owner. `key` makes the answer idempotent; empty without one.
    """

    comm_id: CommIdField
    turn: Count = 0
    task_id: TaskIdField | None = None
    number: Count = 0
    answer: Answer
    key: Annotated[AnswerKey, OMITTED_IF_EMPTY] = ""


def no_group(comm_id: CommId) -> NotFoundError:
    """Return the error for an unknown group. Callers that are no members get the same one."""
    return NotFoundError(f"There is no group {comm_id}.", hint="Only members can see a group.")


class GroupSnapshot(Model):
    """The state of a group, and the sequence of its entry. `charter` is None if the group was never launched.

    If both do not fit into one reply, the charter is abridged; see `fitting`.
    """

    seq: int
    state: GroupState
    charter: Charter | None


def fitting(standing: GroupSnapshot) -> GroupSnapshot:
    """Abridge the charter of a snapshot that does not fit into a reply, because its state has grown since the launch.

    First the parts that only members need are removed: plan, brief, inputs and most of the cards; then the policy, most of the
    goal's text and all cards but the first. Labels stay, because they decide which callers may see the group.
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
    """Request the log entries of a group after `after`, as one of its members.

    The caller shows the `ticket` of a goal to learn that another agent has opened its group.
    """

    comm_id: CommIdField
    agent_id: AgentIdField
    after: Place = 0
    ticket: ShownTicket = None
    session: SessionIdField | None = None


class ListMemberships(Model):
    """Request the open groups of an agent, by the number of the membership, after `after`."""

    agent_id: AgentIdField
    after: Place = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 500


class OpenMembership(Model):
    """A membership in a group that is not known to have ended. Numbers increase."""

    comm_id: CommIdField
    number: int


class OpenMemberships(Model):
    """A page of memberships, in the order of their numbers. `complete` marks the last page."""

    memberships: tuple[OpenMembership, ...]
    complete: bool


class SequencedEntry(Model):
    """A log entry and its sequence. Sequences of one group increase, with gaps."""

    seq: int
    previous_seq: int
    entry: Entry


def encode_sequenced(entry: EncodedEntry, *, seq: int, previous_seq: int) -> bytes:
    """Encode a `SequencedEntry` around an encoded entry."""
    return encode_around({"seq": seq, "previous_seq": previous_seq, "entry": None}, entry.data)


class Entries(Model):
    """A page of a log, in order. With `complete` the last entry was the head when it was read.

    `head` is the last sequence of the log. If the reader's cursor is greater, the log that it read is lost.
    """

    entries: tuple[SequencedEntry, ...]
    complete: bool
    head: int = 0


class Accepted(Model):
    """The message is in the log at `seq`. `entry` is the pushed entry; None if the message was in the log before."""

    outcome: Literal["accepted"] = "accepted"
    seq: int
    entry: SequencedEntry | None = None


class Rejected(Model):
    """The message is not legal; nothing has changed. `legal` are the kinds that the sender may send now."""

    outcome: Literal["rejected"] = "rejected"
    code: RejectionCode
    message: str
    legal: tuple[str, ...] = ()


class SayReply(Model):
    """The reply to a message."""

    answer: Annotated[Accepted | Rejected, Field(discriminator="outcome")]


def encode_accepted(entry: EncodedEntry, *, seq: int, previous_seq: int) -> bytes:
    """Encode a `SayReply` that accepts a message, around its encoded entry."""
    sequenced = encode_sequenced(entry, seq=seq, previous_seq=previous_seq)
    return encode_around({"answer": {"outcome": "accepted", "seq": seq, "entry": None}}, sequenced)


AnyGoal = str | GoalName
"""A goal of the caller by its id, or of any user by its full name."""

PAGE_GOALS = 50
"""Default number of goals of a page of a list."""
PAGE_BYTES = 500_000
"""Maximum stored bytes of a page of a list. Decoded documents need up to thirty times as much memory."""
MOST_LOOKED_AT = 1_000
"""Maximum goals that are read for a page."""


GoalPhase = Phase | Literal["waiting"]
"""The phase of a goal: the phase of its group, or `waiting` without a group."""

PHASES_OF_GOALS: Sequence[str] = ("waiting", *Phase)
"""All phases of goals."""


class GoalStatus(Model):
    """A goal, the last state of its group if it was opened, and its result if the goal has ended.

    In a list, `standing` is None for a goal with a result, and contains no charter. `lacks_result` marks a row of a reply whose
    result does not fit into a message.
    """

    record: GoalRecord
    standing: GroupSnapshot | None = None
    result: GoalResult | None = None
    lacks_result: Annotated[bool, OMITTED_IF_EMPTY] = False

    @property
    def phase(self) -> GoalPhase:
        """The phase of the goal."""
        if self.result is not None:
            return phase_of_end(self.result.reason)
        return "waiting" if self.standing is None else self.standing.state.phase


class GoalList(Model):
    """The matching goals among `looked_at` ones, newest first. `before` is the cursor of the next page; None on the last page."""

    goals: tuple[GoalStatus, ...]
    before: int | None
    looked_at: int


class GroupList(Model):
    """Groups of goals, newest goal first, each parent before its nested groups. Only groups with people contain their policy."""

    groups: tuple[GroupSnapshot, ...]
    before: int | None = None


class GoalFound(GoalReference):
    """The requested documents of a goal; None if one does not exist. Request those in `left_out` again: they did not fit.

    `standing` contains no charter. `launch` is the first entry of the group's log. `removed` is the outcome of a goal whose other
    documents were removed.
    """

    record: GoalRecord | None = None
    standing: GroupSnapshot | None = None
    launch: Entry | None = None
    result: GoalResult | None = None
    left_out: tuple[GoalPart, ...] = ()
    removed: str = ""


def listed_group(group: GroupSnapshot) -> GroupSnapshot:
    """Return a group without its policy, unless the group has people: lists show their questions by the policy."""
    if group.charter is None or any(member.human for member in group.state.members):
        return group
    return group.model_copy(update={"charter": group.charter.model_copy(update={"policy": None, "cast": ()})})
