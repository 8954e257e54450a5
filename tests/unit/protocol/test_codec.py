"""The encoding: what goes in comes out, and whatever else comes in is refused in one sentence."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.group import requests
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, decode, encode, receive, validate
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, GoalId, MessageId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    Header,
    InformTaskProgress,
    InformTaskResult,
    Message,
    Pause,
    Payload,
    Phase,
    SyncTaskAssignment,
    TaskSpec,
)
from ioa.protocol.model import Model
from ioa.protocol.registry import Lease
from ioa.protocol.setup import reads
from ioa.protocol.texts import check_text, shortened
from ioa.protocol.usage import MAX_COUNT, Usage

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=50)
IDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,20}\Z")
AGENTS, TASKS = IDS.map(AgentId), IDS.map(TaskId)
TIMES = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - the zone is drawn beside it
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    max_value=datetime(9000, 1, 1),  # noqa: DTZ001
)
FILE_NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0"), min_size=1, max_size=50)
USAGES = st.none() | st.builds(Usage, tokens_in=st.integers(0, MAX_COUNT), cost_micros=st.integers(0, MAX_COUNT))
ARTIFACTS = st.builds(
    Artifact,
    name=FILE_NAMES.filter(lambda name: name not in (".", "..")),
    object_name=TEXT.filter(bool),
    size_bytes=st.integers(0, 2**60),
    sha256=st.just("0" * 64),
)
SPECS = st.lists(
    st.builds(
        TaskSpec,
        task_id=TASKS,
        assignee=AGENTS,
        task_desc=TEXT.filter(bool),
        uses=st.tuples(TASKS),
        timeout=st.none() | st.timedeltas(timedelta(microseconds=1), timedelta(days=365)),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda spec: spec.task_id,
).map(tuple)
PAYLOADS: st.SearchStrategy[Payload] = st.one_of(
    st.builds(Discussion, content=TEXT, next_speaker=AGENTS),
    st.builds(SyncTaskAssignment, content=TEXT, tasks=SPECS),
    st.builds(AsyncTaskAssignment, content=TEXT, tasks=SPECS),
    st.builds(InformTaskProgress, task_id=TASKS, number=st.integers(1, 99), fraction=st.none() | st.floats(0, 1), usage=USAGES),
    st.builds(InformTaskResult, task_id=TASKS, task_conclusion=TEXT, artifacts=st.tuples(ARTIFACTS)),
    st.builds(Pause, triggers=st.tuples(TASKS)),
    st.builds(ConcludeGroupDiscussion, content=TEXT),
    st.builds(Conclusion, content=TEXT),
)
HEADERS = st.builds(
    Header,
    message_id=IDS.map(MessageId),
    comm_id=IDS.map(CommId),
    sender=AGENTS,
    state=st.sampled_from(Phase),
    turn=st.integers(0, 99),
    after=st.integers(0, 2**53),
    sent_at=TIMES,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | TEXT | st.binary(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
RAW_HEADER = {
    "message_id": "m1",
    "comm_id": "c1",
    "sender": "ada",
    "state": "discussing",
    "turn": 1,
    "after": 0,
    "sent_at": "2026-01-01T00:00:00Z",
}


class Span(Model):
    """A duration alone."""

    length: timedelta


@given(st.builds(Message, header=HEADERS, payload=PAYLOADS))
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    """Each kind of message survives encoding, with its kind, times and files."""
    assert decode(Message, encode(message)) == message


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365 * 10)))
def test_a_duration_comes_back_to_the_microsecond(length: timedelta) -> None:
    """State is compared after decoding, so a rounded duration would be another state."""
    assert decode(Span, encode(Span(length=length))) == Span(length=length)


@given(PLAIN)
def test_what_is_no_message_is_refused(raw: object) -> None:
    """Any valid msgpack that is none of ours is an invalid input and nothing worse."""
    with pytest.raises(InvalidInputError, match="no valid Message"):
        decode(Message, msgpack.packb(raw))


def test_what_is_too_large_is_not_looked_at() -> None:
    """Size comes first, so that nobody can make a service parse megabytes."""
    with pytest.raises(PayloadTooLargeError, match="1,000,001 bytes; 1,000,000 are allowed"):
        decode(Message, b"\xc1" * (MAX_PAYLOAD_BYTES + 1))


def test_what_is_too_large_is_not_sent() -> None:
    """The sender learns it, and what to do instead."""
    goal = Goal(goal_id=GoalId("g1"), goal="x" * 1_000)
    with pytest.raises(PayloadTooLargeError, match="travels by reference"):
        encode(goal, max_payload_bytes=500)


_NUMBERS = [0, 0.0, None, False, b"\0"]


_GOAL: dict[str, object] = {"goal_id": "g1", "goal": "count"}
_LONG: dict[str, object] = {**_GOAL, "goal": "é" * 128, "max_turns": 256}
_TASK = {"task_id": "t1", "assignee": "ada", "task_desc": "count"}
_CARD = {"agent_id": "ada", "name": "Ada", "description": "counts"}
_LEASE = {"renew_every": 3.0, "joined": 7}


@pytest.mark.parametrize(
    ("kind", "raw", "read"),
    [
        (Goal, {**_GOAL, "colour": "blue"}, Goal(goal_id=GoalId("g1"), goal="count")),
        (Goal, {**_LONG, "newer": _NUMBERS}, Goal.model_validate(_LONG)),
        (AgentCard, _CARD, AgentCard.model_validate({**_CARD, "pool": "ada"})),
        (Lease, _LEASE, Lease(renew_every=timedelta(seconds=3), joined=7)),
    ],
    ids=["a field of a newer peer is ignored", "bytes zero that are no text", "an agent alone is its own pool", "durations"],
)
def test_payload_is_read(kind: type[Model], raw: object, read: Model) -> None:
    """And comes back as it was."""
    assert receive(kind, msgpack.packb(raw)) == decode(kind, encode(read)) == read


_BAD_TEXTS = ("a\0b", "\0", "é" * 300 + "\0")
_REJECTED: list[tuple[str, type[Model], object, str]] = [
    *[
        ("broken msgpack", Message, data, "msgpack|valid Message")
        for data in (b"", b"\xc1", b"\x91" * 5_000, b"\x01\x02", b"\x81\x01\x02")
    ],
    ("the first wrong field", Goal, {**_GOAL, "goal_id": "a.b"}, "This is no valid Goal: goal_id: 'a.b' is not a valid id"),
    *[
        ("a time that is none in UTC", Header, {**RAW_HEADER, "sent_at": when}, "no valid Header: sent_at")
        for when in ("9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00", "2026-01-01T00:00:00", "soon")
    ],
    ("half a surrogate pair", Goal, msgpack.packb({**_GOAL, "goal": "ab"}).replace(b"ab", b"\xed\xa0"), "not valid msgpack"),
    *[
        ("the character zero", Goal, raw, "holds the character zero")
        for text in _BAD_TEXTS
        for raw in (
            {**_GOAL, "goal": text},
            {**_GOAL, "numbers": _NUMBERS, "newer": {"deep": [1, [{"in": text}]]}},
            {**_GOAL, "numbers": _NUMBERS, "newer": {text: 1}},
        )
    ],
    *[("bytes as text", Goal, {**_GOAL, "goal": text.encode()}, "valid string") for text in _BAD_TEXTS],
    *[("bytes as text", Discussion, {"content": text.encode()}, "valid string") for text in _BAD_TEXTS],
    (
        "a task id twice",
        Message,
        {"header": RAW_HEADER, "payload": {"type": "SYNC_TASK_ASSIGNMENT", "tasks": [_TASK, _TASK]}},
        "one task id twice",
    ),
    (
        "fields of another kind of message",
        Message,
        {"header": RAW_HEADER, "payload": {"type": "PAUSE", "content": "…", "next_speaker": "ada"}},
        r"payload\.PAUSE\.triggers",
    ),
]


@pytest.mark.parametrize(("kind", "raw", "match"), [row[1:] for row in _REJECTED], ids=[row[0] for row in _REJECTED])
def test_invalid_payload_is_rejected_in_a_sentence(kind: type[Model], raw: object, match: str) -> None:
    """Wherever the fault stands, the error names it before anything else is done with the payload."""
    with pytest.raises(InvalidInputError, match=match):
        receive(kind, raw if isinstance(raw, bytes) else msgpack.packb(raw))


def test_text_that_is_no_unicode_is_rejected() -> None:
    """Half a surrogate pair cannot be encoded, so it gets in nowhere."""
    with pytest.raises(InvalidInputError, match="goal"):
        validate(Goal, {**_GOAL, "goal": "\ud800"})


def test_behind_each_place_of_a_request_there_is_one() -> None:
    """What is asked for stands behind it: behind the last number there is none, by which a request crashed."""
    asked = {"agent_id": "bob", "after": 2**63 - 2}
    after = receive(requests.ListMemberships, msgpack.packb(asked)).after + 1
    assert reads.ReadLog(comm_id=CommId("room"), after=after).after == 2**63 - 1
    with pytest.raises(InvalidInputError, match="after"):
        receive(requests.ListMemberships, msgpack.packb({**asked, "after": 2**63 - 1}))


def test_what_is_nested_too_deep_is_not_received() -> None:
    """Nesting is refused as any other garbage is."""
    deep: object = "x"
    for _ in range(500):
        deep = [deep, 0]
    with pytest.raises(InvalidInputError, match="nested too deep"):
        for _ in range(500):  # the depth at which Python gives up depends on who calls
            receive(Goal, msgpack.packb({"goal_id": "g1", "goal": "count", "newer": deep}))
            deep = [deep, 0]


@given(st.text(alphabet=st.characters(), max_size=50), st.integers(min_value=10, max_value=100))
def test_a_shortened_text_can_travel(text: str, most: int) -> None:
    """What an agent's own function returns is mended before it is sent, so that it is not refused for a character."""
    short = shortened(text, most)
    check_text(short)
    mended = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    assert len(short.encode()) <= most
    assert short == mended or len(mended.encode()) > most


def test_a_number_that_is_too_large_is_refused_where_it_is_written() -> None:
    """Nothing but an error of ours comes of it."""
    with pytest.raises(InvalidInputError, match="larger than any that can be written"):
        encode(Lease.model_construct(renew_every=timedelta(seconds=1), joined=10**30))
