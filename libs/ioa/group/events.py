"""The events of a group. Time, ids and answers of models are part of events, so that a log can be replayed.

Event names are past tense. `Said` contains a member's message; the others come from the control plane.
"""

from __future__ import annotations

import weakref
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.group.rejection import RejectionCode
from ioa.group.state import GroupState, Sketch, Task
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, check_size, encode_around, encode_list, encode_value, read_field
from ioa.protocol.decisions import DecidedBy, Decisions, ModelCalls
from ioa.protocol.goals import Artifact, Degraded, GoalReference, Reason
from ioa.protocol.ids import AgentId, AgentIdField, CommIdField, MessageId, MessageIdField, TaskIdField
from ioa.protocol.messages import (
    Answer,
    AnswerKey,
    ConcludeGroupDiscussion,
    Conclusion,
    Decision,
    InformTaskResult,
    Message,
    Payload,
)
from ioa.protocol.model import OMITTED_IF_EMPTY, Model, Time
from ioa.protocol.policy_parts import Name
from ioa.protocol.setup.charter import MAX_MEMBERS, Charter, ParentTask
from ioa.protocol.usage import NOTHING, Count, Usage

MAX_WHY_CHARS = 2_000
"""Maximum characters of the reason for an invitation."""


class GroupLaunched(Model):
    """Group setup opened the group; the owner gets the floor. `usage` is the usage of the search for members.

    `calls` are the requests to models, and `decided_by` chose the members.
    """

    type: Literal["group_launched"] = "group_launched"
    at: Time
    charter: Charter
    usage: Usage = NOTHING
    calls: ModelCalls = ()
    decided_by: DecidedBy | None = None


class LaunchAbandoned(GoalReference):
    """The goal ended before a group was opened for it, by cancellation or timeout. The log accepts no launch afterwards.

    `user` is the owner of the goal. `parent` is set for a nested group: its end closes the parent's task and is no result of the
    goal. `decided_by` found no fitting agent.
    """

    type: Literal["launch_abandoned"] = "launch_abandoned"
    at: Time
    comm_id: CommIdField
    by: AgentIdField
    reason: Literal[Reason.CANCELLED, Reason.DEADLINE, Reason.NO_AGENT, Reason.FAILED, Reason.MODEL_UNAVAILABLE, Reason.BUDGET]
    content: str
    parent: ParentTask | None = None
    usage: Usage = NOTHING
    calls: ModelCalls = ()
    decided_by: DecidedBy | None = None


class Said(Model):
    """A member sent a message. `sketches` belong to its texts (`ioa.repetition`), in the order of the payload."""

    type: Literal["said"] = "said"
    at: Time
    message: Message
    sketches: tuple[Sketch, ...] = ()


class TaskHeard(Model):
    """The time of the last progress report on a task. Such reports are no entries; the next check of the leases uses them."""

    task_id: TaskIdField
    at: Time


class TimerFired(Model):
    """A deadline may have passed; the state contains which one. `heard` renews the leases of tasks with reported progress."""

    type: Literal["timer_fired"] = "timer_fired"
    at: Time
    heard: tuple[TaskHeard, ...] = ()


class MemberLost(Model):
    """A member's lease ran out."""

    type: Literal["member_lost"] = "member_lost"
    at: Time
    agent_id: AgentIdField


class MemberReturned(Model):
    """A lost member registered again."""

    type: Literal["member_returned"] = "member_returned"
    at: Time
    agent_id: AgentIdField


class MemberJoined(Model):
    """Group setup added an agent that a member with the floor has invited.

    Attributes:
        by: The inviting member, and `turn` the turn of the invitation.
        role: The role of the agent; None in a free group.
        why: The reason, in the words of the inviting member.
        ruled: Whether rules lead the agent in a group whose owner a model leads.
    """

    type: Literal["member_joined"] = "member_joined"
    at: Time
    card: AgentCard
    by: AgentIdField
    turn: int
    role: Name | None = None
    why: Annotated[str, Field(max_length=MAX_WHY_CHARS)] = ""
    ruled: Annotated[bool, OMITTED_IF_EMPTY] = False


class CancelRequested(Model):
    """An authorised caller cancelled the goal or the group."""

    type: Literal["cancel_requested"] = "cancel_requested"
    at: Time
    why: str = ""


class RepetitionRefused(Model):
    """A message was rejected because it repeats the message of `repeats_turn`. The entry does not contain its text."""

    type: Literal["repetition_refused"] = "repetition_refused"
    at: Time
    by: AgentIdField
    turn: int
    message_id: MessageIdField
    repeats_turn: int


class MessageRefused(Model):
    """A decision was rejected because its choice is no option, and has cost a try. The entry does not contain the choice."""

    type: Literal["message_refused"] = "message_refused"
    at: Time
    by: AgentIdField
    turn: int
    message_id: MessageIdField
    code: RejectionCode


class SubgroupOpened(Model):
    """An assignee opened a nested group for its task."""

    type: Literal["subgroup_opened"] = "subgroup_opened"
    at: Time
    task_id: TaskIdField
    by: AgentIdField
    subgroup: CommIdField


class SubgroupClosed(Model):
    """A nested group ended; its conclusion is the result of its task, if the task is still open.

    `turns`, `usage` and `decisions` include nested groups. `degraded` are parts that its conclusion may lack.
    """

    type: Literal["subgroup_closed"] = "subgroup_closed"
    at: Time
    task_id: TaskIdField
    subgroup: CommIdField
    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...] = ()
    turns: Count = 0
    usage: Usage = NOTHING
    degraded: Degraded | None = None
    decisions: tuple[Decisions, ...] = ()


class QuestionAnswered(Model):
    """The user of the goal answered a question of the group or of a task.

    Attributes:
        turn: The turn of the question; 0 for a question of a task.
        number: Number of the question of the task.
        by: The author of the answer.
        key: Key of the answer, see `AnswerQuestion`.
    """

    type: Literal["question_answered"] = "question_answered"
    at: Time
    turn: Annotated[Count, OMITTED_IF_EMPTY] = 0
    task_id: Annotated[TaskIdField | None, OMITTED_IF_EMPTY] = None
    number: Annotated[Count, OMITTED_IF_EMPTY] = 0
    answer: Answer
    by: Annotated[str, Field(max_length=200)]
    key: Annotated[AnswerKey, OMITTED_IF_EMPTY] = ""


class Unheard(Model):
    """An event that a member did not hear. Only views contain it."""

    type: Literal["unheard"] = "unheard"
    at: Time


ControlEvent = (
    GroupLaunched
    | LaunchAbandoned
    | TimerFired
    | MemberLost
    | MemberReturned
    | MemberJoined
    | CancelRequested
    | RepetitionRefused
    | MessageRefused
    | SubgroupOpened
    | SubgroupClosed
    | QuestionAnswered
)
"""Events of the control plane."""

Event = Annotated[Said | ControlEvent | Unheard, Field(discriminator="type")]
"""Any event. No log contains `Unheard`."""

Input = Payload | ControlEvent
"""Input of the state machine: the payload of a message, or an event of the control plane."""

Kind = type[Input]
"""A row of the transition table. A kind is identified by its class, and named by the literal of its `type`."""


def input_of(event: Event) -> Input | Unheard:
    """Return the payload of a message, or another event itself."""
    return event.message.payload if isinstance(event, Said) else event


def files_of(event: Event) -> tuple[Artifact, ...]:
    """Return the files that an event contains."""
    match event:
        case GroupLaunched(charter=charter):
            return charter.inputs
        case SubgroupClosed(artifacts=artifacts) | Said(message=Message(payload=Conclusion(artifacts=artifacts))):
            return artifacts
        case Said(message=Message(payload=ConcludeGroupDiscussion(conclusion=Conclusion(artifacts=artifacts)))):
            return artifacts
        case Said(message=Message(payload=InformTaskResult(artifacts=artifacts, traces=traces))):
            return (*artifacts, *traces)
        case _:
            return ()


class TaskDecision(Decision):
    """The kind of a decision that answers a task. It only names a row of the table; the message is a decision."""


def kind_of(event: Event) -> Kind:
    """Find the event's row in the transition table."""
    if not isinstance(event, Said):
        assert not isinstance(event, Unheard), "what a member was not told moves no group"
        return type(event)
    payload = event.message.payload
    return TaskDecision if type(payload) is Decision and payload.task_id is not None else type(payload)


def name_of(kind: Kind) -> str:
    """Return the name of a kind in messages."""
    return str(kind.model_fields["type"].default)


class Entry(Model):
    """One entry of a group's log: the event, the members that may see it, and the state after it.

    The state comes last, because it is most of a large entry and is encoded apart.

    Attributes:
        audience: The members that receive the event. The others receive the entry without it (`ioa.group.policy.visibility`).
    """

    event: Event
    audience: Annotated[tuple[AgentIdField, ...], Field(max_length=MAX_MEMBERS)]
    state: GroupState


MAX_ENTRY_BYTES = MAX_PAYLOAD_BYTES - 1_000
"""Maximum bytes of an entry. The rest of a payload is reserved for the envelope of a push or a page."""


class EncodedEntry(NamedTuple):
    """An entry with its encoding, which is made once for the log and all pushes."""

    entry: Entry
    data: bytes


_encoded_tasks: dict[int, tuple[weakref.ref[Task], bytes]] = {}
"""Encodings by the identity of an immutable task; each is removed with its task."""


def _encode_task(task: Task) -> bytes:
    number = id(task)
    known = _encoded_tasks.get(number)
    if known is not None and known[0]() is task:
        return known[1]
    data = encode_value({"status": task.status, **task.model_dump(mode="json", exclude_defaults=True)})
    _encoded_tasks[number] = weakref.ref(task, lambda _gone: _encoded_tasks.pop(number, None)), data
    return data


def encode_entry(entry: Entry) -> EncodedEntry:
    """Encode an entry, with its state last. Encodings of its tasks are cached, because a step changes few of them.

    Raises:
        PayloadTooLargeError: It does not fit.
    """
    if entry.state.tasks:
        fields = entry.model_dump(mode="json", exclude={"state": {"tasks"}})
        fields["state"]["tasks"] = None
        data = encode_around(fields, encode_list([_encode_task(task) for task in entry.state.tasks]))
    else:
        data = encode_value(entry.model_dump(mode="json"))
    check_size(data, MAX_ENTRY_BYTES, Entry.__name__)
    return EncodedEntry(entry, data)


def said_as(encoded: bytes) -> tuple[AgentId, MessageId] | None:
    """Return the sender and id of the message in an encoded entry without decoding the state; None without a message.

    Ids are unique only per sender.
    """
    try:
        header = read_field(encoded, "event")["message"]["header"]
        return AgentId(header["sender"]), MessageId(header["message_id"])
    except (InvalidInputError, KeyError, TypeError):
        return None
