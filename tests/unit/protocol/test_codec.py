"""The encoding: what goes in comes out, and whatever else comes in is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.group import requests
from ioa.group.events import Entry, encode_entry
from ioa.protocol import cards, files, goal_order, goals, messages, named_teams, reads, registry, search
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
from ioa.protocol.texts import check_text, shortened
from ioa.protocol.usage import MAX_COUNT, Usage
from tests.unit.group.scenario import launched, said

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


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x91" * 5_000, b"\x01\x02", b"\x81\x01\x02"])
def test_broken_msgpack_is_refused(data: bytes) -> None:
    """Cut off, invalid, nested too deep, followed by more, a number as key."""
    with pytest.raises(InvalidInputError):
        decode(Message, data)


def test_what_is_too_large_is_not_looked_at() -> None:
    """Size comes first, so that nobody can make a service parse megabytes."""
    with pytest.raises(PayloadTooLargeError, match="1,000,001 bytes; 1,000,000 are allowed"):
        decode(Message, b"\xc1" * (MAX_PAYLOAD_BYTES + 1))


def test_what_is_too_large_is_not_sent() -> None:
    """The sender learns it, and what to do instead."""
    goal = Goal(goal_id=GoalId("g1"), goal="x" * 1_000)
    with pytest.raises(PayloadTooLargeError, match="travels by reference"):
        encode(goal, max_payload_bytes=500)


def test_the_first_wrong_field_is_named() -> None:
    """Whoever wrote the payload finds the place."""
    with pytest.raises(InvalidInputError) as refused:
        validate(Goal, {"goal_id": "a.b", "goal": "count"})
    assert refused.value.message.startswith("This is no valid Goal: goal_id: 'a.b' is not a valid id")


def test_a_field_of_a_newer_peer_is_ignored() -> None:
    """A rolling upgrade has both versions talk to each other."""
    raw = {"goal_id": "g1", "goal": "count", "colour": "blue"}
    assert decode(Goal, msgpack.packb(raw)) == Goal(goal_id=GoalId("g1"), goal="count")


@pytest.mark.parametrize("when", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00", "2026-01-01T00:00:00", "soon"])
def test_a_time_that_cannot_be_told_in_utc_is_refused(when: str) -> None:
    """Outside the calendar, without a zone, no time at all."""
    with pytest.raises(InvalidInputError, match="no valid Header: sent_at"):
        decode(Header, msgpack.packb({**RAW_HEADER, "sent_at": when}))


def test_text_that_is_no_unicode_is_refused() -> None:
    """Half a surrogate pair cannot be encoded, so it gets in nowhere."""
    with pytest.raises(InvalidInputError, match="goal"):
        validate(Goal, {"goal_id": "g1", "goal": "\ud800"})


_NUMBERS = [0, 0.0, None, False, b"\0"]

UNSTORABLE = {
    "zero": "a\0b",
    "only zero": "\0",
    "zero behind much": "é" * 300 + "\0",
}


@pytest.mark.parametrize("text", UNSTORABLE.values(), ids=UNSTORABLE)
@pytest.mark.parametrize(
    "place",
    [
        lambda text: {"goal_id": "g1", "goal": text},
        lambda text: {"goal_id": "g1", "goal": "count", "numbers": _NUMBERS, "newer": {"deep": [1, [{"in": text}]]}},
        lambda text: {"goal_id": "g1", "goal": "count", "numbers": _NUMBERS, "newer": {text: 1}},
    ],
    ids=["a field", "a field of a newer peer", "a name"],
)
def test_a_text_that_nothing_can_store_is_not_received(place: Callable[[str], dict[str, object]], text: str) -> None:
    """Wherever it stands, it is refused with the text's beginning, before anything else is done with it."""
    with pytest.raises(InvalidInputError, match="holds the character zero"):
        receive(Goal, msgpack.packb(place(text)))


@pytest.mark.parametrize("text", UNSTORABLE.values(), ids=UNSTORABLE)
def test_bytes_are_no_text(text: str) -> None:
    """They would come in as one, past what is refused of texts."""
    for kind, fields in ((Goal, {"goal_id": "g1", "goal": text.encode()}), (Discussion, {"content": text.encode()})):
        with pytest.raises(InvalidInputError, match="valid string"):
            receive(kind, msgpack.packb(fields))


_HEADS = [b"\xdc\x7f\xff", b"\xdd\x00\xff\xff\xff", b"\xde\x7f\xff", b"\xc7\x00\x05"]
"""Heads of long lists, of a map and of an extension type."""
_NOISE = st.binary(max_size=400) | st.sampled_from(_HEADS).map(lambda head: head * 4_000)
_STORY = launched("ada", "bob").assigns("ada", "t1-1:bob")
_ENTRY = encode_entry(Entry(event=_STORY.log[-1], state=_STORY.state, audience=()))


@given(_NOISE, st.integers(0, len(_ENTRY.data)), st.integers(0, 40))
def test_codec_decodes_any_bytes_or_rejects_them(noise: bytes, at: int, gap: int) -> None:
    """Noise, and an entry or a message with noise at one place, are decoded or rejected with a typed error."""
    message = encode(said("ada", Discussion(content="Well."), 1).message)
    for kind, whole in ((Entry, _ENTRY.data), (Message, message)):
        for data in (noise, whole[:at] + noise + whole[at + gap :], whole[:at]):
            for read in (decode, receive):
                with suppress(InvalidInputError):
                    assert isinstance(read(kind, data), kind)


def test_behind_each_place_of_a_request_there_is_one() -> None:
    """What is asked for stands behind it: behind the last number there is none, by which a request crashed."""
    asked = {"agent_id": "bob", "after": 2**63 - 2}
    after = receive(requests.ListMemberships, msgpack.packb(asked)).after + 1
    assert reads.ReadLog(comm_id=CommId("room"), after=after).after == 2**63 - 1
    with pytest.raises(InvalidInputError, match="after"):
        receive(requests.ListMemberships, msgpack.packb({**asked, "after": 2**63 - 1}))


def test_half_a_surrogate_pair_is_not_received() -> None:
    """UTF-8 has no such thing, and msgpack takes no other bytes."""
    data: bytes = msgpack.packb({"goal_id": "g1", "goal": "ab"}).replace(b"ab", b"\xed\xa0")
    with pytest.raises(InvalidInputError, match="not valid msgpack"):
        receive(Goal, data)


def test_zeros_that_are_no_text_are_received() -> None:
    """Numbers and the lengths of texts hold the byte zero too."""
    raw = {"goal_id": "g1", "goal": "é" * 128, "max_turns": 256, "newer": _NUMBERS}
    assert receive(Goal, msgpack.packb(raw)) == Goal(goal_id=GoalId("g1"), goal="é" * 128, max_turns=256)


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


def test_an_assignment_names_a_task_id_once() -> None:
    """Two tasks of one id could not be told apart."""
    task = {"task_id": "t1", "assignee": "ada", "task_desc": "count"}
    raw = {"header": RAW_HEADER, "payload": {"type": "SYNC_TASK_ASSIGNMENT", "tasks": [task, task]}}
    with pytest.raises(InvalidInputError, match="one task id twice"):
        validate(Message, raw)


def test_a_payload_has_only_the_fields_of_its_kind() -> None:
    """What another kind would say is dropped; what its own kind needs is demanded."""
    raw = {"header": RAW_HEADER, "payload": {"type": "PAUSE", "content": "…", "next_speaker": "ada"}}
    with pytest.raises(InvalidInputError, match=r"payload\.PAUSE\.triggers"):
        validate(Message, raw)


def test_an_agent_alone_is_its_own_pool() -> None:
    """Only replicas need to name one."""
    card = validate(AgentCard, {"agent_id": "ada", "name": "Ada", "description": "counts"})
    assert (card.pool, decode(AgentCard, encode(card))) == ("ada", card)


def test_a_lease_comes_back_as_it_was() -> None:
    """Durations and what tells an agent that it missed something are kept."""
    lease = Lease(duration=timedelta(seconds=9), renew_every=timedelta(seconds=3), joined=7)
    assert decode(Lease, encode(lease)) == lease


_TOLD_BY_SERVICES = frozenset(
    "Accepted AuditPage Entries GoalResult GroupSnapshot GroupStatus Hit IndexStatus NamedTeam NeedHits OpenMembership "
    "OpenMemberships Pruned SayReply SearchResult SequencedEntry".split()
)
"""What strangers do not say, but are told."""


def _asked() -> Iterator[type[Model]]:
    for module in (cards, files, goal_order, goals, messages, named_teams, registry, requests, search, reads):
        for one in vars(module).values():
            if isinstance(one, type) and issubclass(one, Model) and one.__module__ == module.__name__:
                yield one


def _unbounded(schema: object, at: str = "") -> Iterator[str]:
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and not schema.keys() & {"maximum", "exclusiveMaximum", "enum", "const"}:
            yield at
        for key, inner in schema.items():
            yield from _unbounded(inner, key if key not in ("properties", "items", "anyOf", "$defs") else at)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _unbounded(inner, at)


def test_no_number_that_can_be_asked_is_too_large_to_be_written() -> None:
    """A number of 31 digits in a text is read as one, and cannot be written: what answered left a traceback for each."""
    asked = [one for one in _asked() if one.__name__ not in _TOLD_BY_SERVICES]
    assert len(asked) > 60
    assert {one.__name__: left for one in asked if (left := sorted(set(_unbounded(one.model_json_schema()))))} == {}


def test_a_number_that_is_too_large_is_refused_where_it_is_written() -> None:
    """Nothing but an error of ours comes of it."""
    with pytest.raises(InvalidInputError, match="larger than any that can be written"):
        encode(Lease.model_construct(duration=timedelta(seconds=1), renew_every=timedelta(seconds=1), joined=10**30))
