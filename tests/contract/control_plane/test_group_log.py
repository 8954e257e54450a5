"""What every group log promises: one total order for each group, decided by the expected sequence."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.errors import PayloadTooLargeError, UnavailableError
from ioa.group.events import EncodedEntry, Entry, Said, encode_entry
from ioa.group.requests import Entries, SequencedEntry
from ioa.ports.group_log import AppendConflictError, GroupLog, StoredEntry, UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId, CommId, MessageId
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash
from tests.unit.group.scenario import launched

ROOM, OTHER = CommId("room"), CommId("other")
ADA = AgentId("ada")


@pytest.fixture
def log(client: Client) -> GroupLog:
    """An empty log."""
    return NatsGroupLog(client)


def entry(why: str = "") -> EncodedEntry:
    """An entry that can be told from others by its text."""
    story = launched("ada", "bob").cancelled()
    event = story.log[-1].model_copy(update={"why": why})
    return encode_entry(Entry(event=event, state=story.state, audience=story.state.living()))


def text_of(stored: StoredEntry | None) -> str:
    """The text an entry was made with."""
    assert stored is not None
    return str(getattr(stored.entry.event, "why", ""))


async def fill(log: GroupLog, comm_id: CommId, *texts: str) -> list[int]:
    """Append entries one after the other."""
    seqs: list[int] = []
    for text in texts:
        seqs.append(await log.append(comm_id, entry(text), expected_seq=seqs[-1] if seqs else 0))
    return seqs


async def test_a_log_tells_how_much_it_holds(log: GroupLog) -> None:
    """Whoever reads the head of a group knows how many bytes its whole log has, and no other group's."""
    one, two = entry("one"), entry("two")
    first = await log.append(ROOM, one, expected_seq=0)
    await log.append(OTHER, one, expected_seq=0)
    await log.append(ROOM, two, expected_seq=first, log_bytes=len(one.data))
    told = [stored.log_bytes for stored in await log.read(ROOM, after=0, limit=2)]
    head = await log.last(ROOM)
    assert head is not None
    assert (told, head.log_bytes) == ([len(one.data), len(one.data + two.data)], len(one.data + two.data))


async def test_sequences_rise_in_each_group(log: GroupLog) -> None:
    """Two groups that grow side by side keep their own order."""
    first = await log.append(ROOM, entry("a"), expected_seq=0)
    second = await log.append(OTHER, entry("b"), expected_seq=0)
    third = await log.append(ROOM, entry("c"), expected_seq=first)
    assert first < third
    assert [text_of(stored) for stored in await log.read(ROOM, after=0, limit=10)] == ["a", "c"]
    assert [stored.seq for stored in await log.read(OTHER, after=0, limit=10)] == [second]


@pytest.mark.parametrize("wrong", ["behind", "ahead"])
async def test_a_wrong_expectation_changes_nothing(log: GroupLog, wrong: str) -> None:
    """An append that expects another head conflicts, and the log stays as it was."""
    seqs = await fill(log, ROOM, "one", "two")
    expected = {"behind": seqs[0], "ahead": seqs[1] + 1}[wrong]
    with pytest.raises(AppendConflictError):
        await log.append(ROOM, entry("three"), expected_seq=expected)
    assert [stored.seq for stored in await log.read(ROOM, after=0, limit=10)] == seqs


async def test_one_of_many_racers_wins(log: GroupLog) -> None:
    """Of many appends that expect the same head one is stored and all others conflict."""
    [head] = await fill(log, ROOM, "start")
    racers = [log.append(ROOM, entry(str(number)), expected_seq=head) for number in range(12)]
    outcomes = await asyncio.gather(*racers, return_exceptions=True)
    won = [outcome for outcome in outcomes if isinstance(outcome, int)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, AppendConflictError)]
    assert (len(won), len(lost)) == (1, 11)
    assert [stored.seq for stored in await log.read(ROOM, after=0, limit=50)] == [head, *won]


async def test_pages_join_without_gap(log: GroupLog) -> None:
    """Reading page by page gives every entry once, in order."""
    await fill(log, ROOM, *"abcde")
    pages, after = [], 0
    while page := await log.read(ROOM, after=after, limit=2):
        pages.append([text_of(stored) for stored in page])
        after = page[-1].seq
    assert pages == [["a", "b"], ["c", "d"], ["e"]]


async def test_the_largest_entry_can_be_delivered(log: GroupLog) -> None:
    """Whatever the log takes also fits into a push and into an answer to a member that repairs itself."""
    size = 1_000_000 - len(entry().data)
    stored = None
    while stored is None:
        size -= 100
        try:
            stored = await log.append(ROOM, entry("x" * size), expected_seq=0)
        except PayloadTooLargeError:
            continue
    page = await log.read(ROOM, after=0, limit=1)
    pushed = SequencedEntry(seq=2**53, previous_seq=2**53, entry=page[0].entry)
    assert len(encode(Entries(entries=(pushed,), complete=True))) <= 1_000_000


async def test_outage_raises_unavailable_until_it_ends(log: GroupLog, nats_server: NatsServer) -> None:
    """While the log is away every call says so; an append whose outcome is unknown is in the log at most once."""
    [head] = await fill(log, ROOM, "before")
    await crash(nats_server)
    calls = (log.last(ROOM), log.read(ROOM, after=0, limit=1), log.append(ROOM, entry("during"), expected_seq=head))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [UnavailableError] * 3
    await nats_server.start()
    assert text_of(await eventually(lambda: _read_or_none(log), lambda stored: stored is not None)) in ("before", "during")
    with suppress(AppendConflictError):  # the first attempt was stored
        await log.append(ROOM, entry("during"), expected_seq=head)
    assert [text_of(stored) for stored in await log.read(ROOM, after=0, limit=9)] == ["before", "during"]


async def _read_or_none(log: GroupLog) -> StoredEntry | None:
    try:
        return await log.last(ROOM)
    except UnavailableError:
        return None


async def test_malformed_entry_is_named_in_the_error(client: Client) -> None:
    """Who reads an entry that nobody can read learns which it is, and so does who is to keep a copy; what lies before is read."""
    told: list[UnreadableEntryError] = []

    async def note(error: UnreadableEntryError) -> None:
        told.append(error)

    log = NatsGroupLog(client, note)
    await fill(log, ROOM, "a")
    garbage = (await client.jetstream().publish(subjects.log(ROOM), b"\xc1garbage")).seq
    await fill(log, OTHER, "b")
    with pytest.raises(
        UnreadableEntryError, match=f"Entry {garbage} of group room cannot be read.*nats stream get IOA_LOG {garbage}"
    ):
        await log.last(ROOM)
    with pytest.raises(UnreadableEntryError):
        await log.read(ROOM, after=0, limit=10)
    first = await log.read(ROOM, after=0, limit=1)
    assert [(error.comm_id, error.seq, error.data) for error in told] == [(ROOM, garbage, b"\xc1garbage")] * 2
    assert (text_of(first[0]), text_of(await log.last(OTHER))) == ("a", "b")


def said(message_id: str, turn: int) -> EncodedEntry:
    """An entry that holds a message."""
    story = launched("ada", "bob").says("ada", to="bob")
    event = story.log[-1]
    assert isinstance(event, Said)
    header = event.message.header.model_copy(update={"message_id": MessageId(message_id), "turn": turn})
    event = event.model_copy(update={"message": event.message.model_copy(update={"header": header})})
    return encode_entry(Entry(event=event, state=story.state, audience=story.state.living()))


async def test_a_message_is_found_by_its_id(log: GroupLog) -> None:
    """Among the first entries behind a sequence, and no further; entries without messages are passed over."""
    seqs = await fill(log, ROOM, "no message")
    for number in range(6):
        seqs.append(await log.append(ROOM, said(f"m-{number}", number), expected_seq=seqs[-1]))
    found = [
        await log.find_message(ROOM, MessageId(message_id), sender=ADA, after=after, limit=limit)
        for message_id, after, limit in (
            ("m-0", 0, 64),
            ("m-3", 0, 5),
            ("m-3", 0, 4),
            ("m-3", seqs[4], 64),
            ("m-9", 0, 64),
        )
    ]
    assert found == [seqs[1], seqs[4], None, None, None]
    assert await log.find_message(ROOM, MessageId("m-0"), sender=AgentId("bob"), after=0, limit=64) is None


async def test_a_message_is_found_behind_garbage(client: Client, log: GroupLog) -> None:
    """What cannot be read is passed over: it holds no message that anybody asks for."""
    (first,) = await fill(log, ROOM, "no message")
    for garbage in (b"", b"\xc1", b"\x81\xa5event\xc0", b"{}"):
        await client.jetstream().publish(subjects.log(ROOM), garbage)
    last = (await client.jetstream().stream_info(LOG)).state.last_seq
    seq = await log.append(ROOM, said("m-0", 0), expected_seq=last)
    assert await log.find_message(ROOM, MessageId("m-0"), sender=ADA, after=first, limit=64) == seq


async def test_a_page_ends_where_it_is_large_enough(log: GroupLog) -> None:
    """No entry is read behind those that fill a page by their bytes, and there is always one."""
    seqs = await fill(log, ROOM, *(str(number) * 1_000 for number in range(6)))
    size = len(entry("0" * 1_000).data)
    pages = [await log.read(ROOM, after=0, limit=5, max_bytes=most) for most in (1, 3 * size, 100 * size)]
    assert [[stored.seq for stored in page] for page in pages] == [seqs[:1], seqs[:3], seqs[:5]]
    assert pages[0][0].size_bytes == size
