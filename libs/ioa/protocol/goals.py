"""Goals, their labels, files and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from ioa.errors import InvalidInputError
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, decode_json, encode
from ioa.protocol.decisions import Decisions
from ioa.protocol.ids import (
    IS_TOKEN,
    LOCAL,
    AgentIdField,
    CommId,
    CommIdField,
    GoalIdField,
    GoalName,
    TaskIdField,
    UserIdField,
)
from ioa.protocol.model import OMITTED_IF_EMPTY, Digest, Model, Time
from ioa.protocol.teams.team_file import TeamSpec
from ioa.protocol.usage import MAX_COUNT, NOTHING, Count, Usage

MAX_LABELS, MAX_LABEL_CHARS = 16, 200

PROBE = "ioa-probe"
"""Marks a probe: a goal that is offered to no agent and ends at its deadline. Metrics do not count it."""

CONVERSATIONS = ("a2a-context", "a2a-message", "agui-thread")
"""Labels that name the conversation of a goal. They grant no access, so no key may have one."""

RERUN_OF = "rerun-of"
"""Label of a rerun: the id of the earlier goal, as `USER/ID` if users are known."""

RESERVED = ("owner", *CONVERSATIONS, PROBE, RERUN_OF)
"""Labels that only the client library and the gateway set: a goal's owner, conversation and earlier run, and probes."""

Labels = Annotated[
    dict[Annotated[str, IS_TOKEN], Annotated[str, Field(max_length=MAX_LABEL_CHARS)]],
    Field(max_length=MAX_LABELS),
    OMITTED_IF_EMPTY,
]
"""At most 16; a name is an id as others are, a value any text of at most 200 characters. Not written where there are none."""


def read_labels(written: Iterable[str]) -> dict[str, str]:
    """Read labels as people write them, `name=value` each.

    Raises:
        InvalidInputError: A label has another form, or occurs twice.
    """
    labels: dict[str, str] = {}
    for one in written:
        name, equals, value = one.partition("=")
        if not equals or name in labels:
            raise InvalidInputError(f"{one[:80]!r} is no label of its own.", hint="Write each as name=value, and each name once.")
        labels[name] = value
    return labels


def refuse_reserved(labels: Iterable[str]) -> None:
    """Reject labels that only the system sets.

    Raises:
        InvalidInputError: One is reserved.
    """
    for name in labels:
        if name in RESERVED:
            raise InvalidInputError(f"The label {name} is the system's to set.", hint="Choose another name.")


def bears(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether these are among the labels, with these values."""
    return wanted.items() <= labels.items()


MAX_GOAL_CHARS, MAX_INPUTS = 32_000, 100
GOAL_TURNS = 40
"""Default of `max_turns` of a goal without a team."""


def check_file_name(value: str) -> str:
    """Return `value` if it is a plain file name without a folder."""
    if value in (".", "..") or any(character in value for character in "/\\\0"):
        raise ValueError(f"{value[:80]!r} is not a plain file name")
    return value


_MAX_PLAIN_NAME_BYTES, _MAX_ENDING_BYTES = 200, 20
"""Maximum bytes of a name, and of an ending that is kept when the name is shortened."""


def plain_file_name(name: str) -> str:
    """Return a similar name that is valid on any system: without path and control characters, and not too long."""
    last = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    plain = "".join("_" if letter < " " or letter == "\x7f" else letter for letter in last)
    written = plain.encode("utf-8", "replace")
    if len(written) > _MAX_PLAIN_NAME_BYTES:
        stem, dot, ending = plain.rpartition(".")
        kept = f"{dot}{ending}".encode("utf-8", "replace") if stem else b""
        kept = kept if len(kept) <= _MAX_ENDING_BYTES else b""
        written = written[: _MAX_PLAIN_NAME_BYTES - len(kept)].decode("utf-8", "ignore").encode() + kept
    plain = written.decode("utf-8")
    return plain if plain.strip(". ") else "file"


FileName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(check_file_name), AfterValidator(plain_file_name)]
"""A name in the form in which stores keep it, so that the same file has the same name in every message."""


ObjectName = Annotated[str, Field(min_length=1, max_length=512)]


class Announced(Model):
    """A file as its writer announces it. Further bytes are rejected, and readers check the digest."""

    name: FileName
    size_bytes: Count
    sha256: Digest
    media_type: Annotated[str, Field(max_length=200)] = "application/octet-stream"


class Artifact(Announced):
    """A file by reference: group setup stores its bytes under `object_name`."""

    object_name: ObjectName


class RepetitionRule(StrEnum):
    """Whether a member may repeat its message, word for word, if nothing new happened since."""

    OFF = "off"
    VERBATIM = "verbatim"


class GoalReference(Model):
    """The name of a goal: its user, and its id."""

    goal_id: GoalIdField
    user: UserIdField = LOCAL

    @property
    def name(self) -> GoalName:
        """The unique name of the goal."""
        return GoalName(self.user, self.goal_id)


class GoalOptions(Model):
    """Fields of a goal that are the same in the order of its user. `labels` are for searches."""

    goal: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_GOAL_CHARS)]
    agent: AgentIdField | None = None
    as_task: Annotated[bool, OMITTED_IF_EMPTY] = False
    max_tokens: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    traceparent: Annotated[str, Field(max_length=200)] = ""
    repetition: RepetitionRule = RepetitionRule.VERBATIM
    labels: Labels = Field(default_factory=dict)


class GoalTerms(GoalOptions, GoalReference):
    """The terms of a goal.

    `user` launched it. `agent` addresses one agent or pool; without it any agent may take the goal and lead its team. With
    `as_task` and without a team, the leading agent does the goal itself, as one task. Turns, tokens and cost limit the goal's
    group and all nested groups together; None is no limit. `team` is the team and its policy; without it the leader forms a
    team. `team_name` is the reference of a stored team that the goal named.
    """

    inputs: Annotated[tuple[Artifact, ...], Field(max_length=MAX_INPUTS)] = ()
    max_turns: Annotated[int, Field(ge=1, le=10_000)] = GOAL_TURNS
    max_cost_micros: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    timeout: Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=30))] = timedelta(hours=1)
    team: Annotated[TeamSpec | None, OMITTED_IF_EMPTY] = None
    team_name: Annotated[str, Field(max_length=80), OMITTED_IF_EMPTY] = ""


class Goal(GoalTerms):
    """A goal; see `GoalTerms`."""

    @property
    def comm_id(self) -> CommId:
        """The `comm_id` of its root group."""
        return self.name.comm_id

    @property
    def policy(self) -> str:
        """The digest of the policy of its group; empty if it has none."""
        return "" if self.team is None else self.team.policy.digest


class GoalRecord(Model):
    """An accepted goal. It never changes.

    `ticket_digest` is the digest of the ticket that its leader shows (`ioa.protocol.setup.tickets`).
    """

    goal: Goal
    accepted_at: Time
    ticket_digest: Digest

    @property
    def deadline(self) -> datetime:
        """Time at which the goal ends at the latest."""
        return self.accepted_at + self.goal.timeout


class Reason(StrEnum):
    """Reason of the end of a goal. `CONCLUDED` is success, every other reason a failure."""

    CONCLUDED = "concluded"
    MAX_TURNS = "max_turns"
    DEADLINE = "deadline"
    BUDGET = "budget"
    MEMBER_LOST = "member_lost"
    NO_AGENT = "no_agent"
    CANCELLED = "cancelled"
    FAILED = "failed"
    MODEL_UNAVAILABLE = "model_unavailable"
    NO_SPEAKER = "no_speaker"
    REFUSED = "refused"


ForcedReason = Literal[Reason.MAX_TURNS, Reason.BUDGET]
"""The limits that end a discussion early, so that it must be concluded with the present results."""


class Degraded(Model):
    """Parts that a conclusion may lack: the members that were lost when it was stated, and their unfinished tasks."""

    lost: tuple[AgentIdField, ...]
    tasks: tuple[TaskIdField, ...] = ()


class GoalResult(GoalReference):
    """The only result of a goal, published on `ioa.v1.result.<user>.<goal_id>`.

    `turns`, `usage` and `decisions` include the nested groups that had ended before. `limit` is the limit that ended the discussion
    early, if the goal was reached nevertheless.
    """

    reason: Reason
    content: str
    artifacts: tuple[Artifact, ...] = ()
    comm_id: CommIdField
    turns: int
    usage: Usage = NOTHING
    degraded: Degraded | None = None
    decisions: tuple[Decisions, ...] = ()
    finished_at: Time
    limit: ForcedReason | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the goal was reached."""
        return self.reason is Reason.CONCLUDED


class EndedGoal(GoalReference):
    """The rest of a removed goal: its id remains used, and its outcome known.

    Attributes:
        reason: Reason of its end; None if it was unknown when it was removed.
        ended_at: Time of its end; without a reason, its deadline.
    """

    reason: Reason | None
    ended_at: Time

    def __str__(self) -> str:
        return f"{self.reason or 'for an unknown reason'}, {self.ended_at:%Y-%m-%d %H:%M:%S} UTC"


_JSON_BEGINS = b"{"
"""In msgpack this byte is a number, so no result begins with it."""


def encode_result(result: GoalResult) -> bytes:
    """Encode a result as JSON, or as msgpack if its JSON does not fit into a message.

    Raises:
        PayloadTooLargeError: It would not fit into one message at all.
        InvalidInputError: A text in it cannot be written in UTF-8.
    """
    packed = encode(result)
    data = result.model_dump_json().encode()
    return data if len(data) <= MAX_PAYLOAD_BYTES else packed


def decode_result(data: bytes) -> GoalResult:
    """Decode a result by its first byte.

    Raises:
        PayloadTooLargeError: The payload is larger than allowed; it was not looked at.
        InvalidInputError: It is no result.
    """
    return decode_json(GoalResult, data) if data.startswith(_JSON_BEGINS) else decode(GoalResult, data)
