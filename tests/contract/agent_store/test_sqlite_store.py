"""What only a memory in a file can promise: surviving its process, and saying what is wrong with the file."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ioa.adapters import sqlite_file, sqlite_store
from ioa.adapters.sqlite_file import FORMAT
from ioa.adapters.sqlite_store import SqliteStore, open_sqlite_store
from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.group.state import MAX_MEMBERS, Ended
from ioa.protocol.codec import encode
from ioa.protocol.ids import AgentId, CommId, SessionId, TaskId
from tests.contract.agent_store.stories import message, result, sequenced
from tests.rig.deadline import eventually
from tests.unit.group.scenario import COMM, START

_MANY = tuple(AgentId(f"agent-{number:0>32}") for number in range(MAX_MEMBERS))
"""An audience that makes an entry large: as many as a group may have, with long names."""

_WRITER = """
import asyncio, sys
from pathlib import Path
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.protocol.ids import CommId, TaskId
from tests.contract.agent_store.stories import message, result, sequenced

async def main():
    async with open_sqlite_store(Path(sys.argv[1])) as store:
        for number in range(100_000):
            comm_id = CommId(f"room-{number}")
            for entry in sequenced()[:3]:
                state = entry.entry.state.model_copy(update={"comm_id": comm_id})
                await store.append(entry.model_copy(update={"entry": entry.entry.model_copy(update={"state": state})}))
            await store.put_outgoing("turn:1", message(f"m-{number}", comm_id=comm_id))
            await store.finish_task(comm_id, result(str(number)))
            print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 7])
async def test_a_killed_process_leaves_whole_transactions(tmp_path: Path, acknowledged: int) -> None:
    """After SIGKILL in the middle of writes, what was acknowledged is there, and no cursor disagrees with its entries."""
    path = tmp_path / "memory.sqlite"
    writer = await asyncio.create_subprocess_exec(sys.executable, "-c", _WRITER, str(path), stdout=asyncio.subprocess.PIPE)
    assert writer.stdout is not None
    async with asyncio.timeout(30):
        told = [int(await writer.stdout.readline()) for _ in range(acknowledged)]
    os.kill(writer.pid, signal.SIGKILL)
    await writer.communicate()

    async with open_sqlite_store(path) as store:
        kept = [
            (
                [entry.seq for entry in await store.entries(CommId(f"room-{number}"))],
                (await store.outgoing(CommId(f"room-{number}"))).get("turn:1"),
                await store.finished_task(CommId(f"room-{number}"), TaskId("t1")),
            )
            for number in told
        ]
    with sqlite3.connect(path) as database:
        astray = database.execute(
            "SELECT comm_id FROM groups WHERE cursor != (SELECT max(seq) FROM entries WHERE entries.comm_id = groups.comm_id)"
        ).fetchall()
    database.close()

    expected = [([7, 14, 21], message(f"m-{number}", comm_id=CommId(f"room-{number}")), result(str(number))) for number in told]
    assert (kept, astray) == (expected, [])


async def test_a_file_that_is_no_memory_is_put_aside(tmp_path: Path) -> None:
    """A file of another kind stays what it is, under another name, and the agent begins afresh; twice, if need be."""
    path, letter = tmp_path / "memory.sqlite", b"This is a letter to a friend, and no database at all. " * 50
    for _ in range(2):
        path.write_bytes(letter)
        with capture_logs() as lines:
            async with open_sqlite_store(path) as store:
                await store.put_outgoing("turn:1", message("m1"))

    assert [path.with_name(f"memory.sqlite.damaged-{number}").read_bytes() for number in (1, 2)] == [letter] * 2
    assert [(line["event"], line["log_level"], line["put_aside"]) for line in lines] == [
        ("memory_damaged", "error", str(tmp_path / "memory.sqlite.damaged-2"))
    ]


async def test_what_holds_the_threads_of_its_loop_holds_up_no_memory(tmp_path: Path) -> None:
    """Pages that took long to be read did: until the first one was, nothing of any group was noted."""
    over, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        over.wait()

    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    async with open_sqlite_store(tmp_path / "memory.sqlite") as store:
        await store.put_outgoing("turn:1", message("m1"))
        held = loop.run_in_executor(None, hold)
        try:
            async with asyncio.timeout(30):
                await eventually(begun.is_set)
                await store.note_session(SessionId("s1"))
                assert (await store.last_session(), begun.is_set()) == ("s1", True)
                assert [entry.seq for entry in await store.entries(COMM)] == []
        finally:
            over.set()
            await held


async def _fill(path: Path, groups: int = 25) -> None:
    async with open_sqlite_store(path) as store:
        for number in range(groups):
            for entry in sequenced():
                state = entry.entry.state.model_copy(update={"comm_id": CommId(f"room-{number}")})
                await store.append(entry.model_copy(update={"entry": entry.entry.model_copy(update={"state": state})}))


def _damage(path: Path) -> None:
    """Overwrite half of every page but the first."""
    pages = bytearray(path.read_bytes())
    for start in range(4_096, len(pages), 4_096):
        pages[start : start + 2_000] = os.urandom(2_000)
    path.write_bytes(pages)


async def test_a_memory_that_is_damaged_while_it_is_in_use_is_begun_afresh(tmp_path: Path) -> None:
    """The call that finds it is answered from the fresh file, and the memory is well."""
    path = tmp_path / "memory.sqlite"
    await _fill(path)
    with capture_logs() as lines:
        async with open_sqlite_store(path) as store:
            await store.last_session()
            _damage(path)
            before = await store.entries(CommId("room-1"))
            kept = [await store.append(entry) for entry in sequenced()]
            well = store.is_well

    assert (list(before), set(kept), well, [line["event"] for line in lines]) == ([], {True}, True, ["memory_damaged"])


async def test_a_row_that_cannot_be_read_is_damage_too(tmp_path: Path) -> None:
    """A file that SQLite finds sound may hold what nobody wrote."""
    path = tmp_path / "memory.sqlite"
    async with open_sqlite_store(path) as store:
        await store.put_outgoing("turn:1", message("m1"))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE outbox SET data = ?", (b"no message",))
    database.close()
    with capture_logs() as lines:
        async with open_sqlite_store(path) as store:
            found = (await store.outgoing(COMM)).get("turn:1")

    assert (found, [line["event"] for line in lines]) == (None, ["memory_damaged"])


async def test_a_memory_that_does_not_answer_is_not_well(tmp_path: Path) -> None:
    """While calls fail it says so, once that has lasted; the next answer makes it well."""
    path = tmp_path / "memory.sqlite"
    store = SqliteStore(path, answers_within=timedelta(0))
    path.mkdir()
    with pytest.raises(UnavailableError):
        await store.last_session()
    failing = store.is_well
    path.rmdir()
    await store.last_session()
    await store.aclose()

    assert (failing, store.is_well) == (False, True)


async def test_what_is_forgotten_gives_its_room_back(tmp_path: Path) -> None:
    """The file shrinks, and is not kept open for it."""
    path = tmp_path / "memory.sqlite"
    await _fill(path, groups=200)
    before = path.stat().st_size
    stage = sequenced()[-1].entry.state.stage
    assert isinstance(stage, Ended)
    async with open_sqlite_store(path) as store:
        forgotten = await store.prune(stage.ended_at + timedelta(seconds=1))
        after, opened = path.stat().st_size, store._connection is not None

    assert (forgotten, after < before / 4, opened) == (200, True, False)


async def test_the_largest_of_what_has_ended_goes_where_it_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By groups that end as soon as they are large, a stranger fills the disk long before a day is over; what is small stays."""
    path, small, large = tmp_path / "memory.sqlite", CommId("room-1"), CommId("room-2")
    await _fill(path, groups=3)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO entries VALUES (?, 1, ?)", (large, os.urandom(200_000)))
    monkeypatch.setattr(sqlite_store, "_MOST_BYTES", 100_000)
    async with open_sqlite_store(path) as store:
        forgotten = await store.prune(START)
        kept = [bool(await store.entries(room)) for room in (small, large)]
    assert (forgotten, kept, path.stat().st_size < 100_000) == (1, [True, False], True)


async def test_memory_of_other_format_is_rejected(tmp_path: Path) -> None:
    """The error names the file, both numbers and the fix."""
    path = tmp_path / "memory.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()

    with pytest.raises(InvalidInputError, match=rf"memory.sqlite has format {FORMAT + 1}; expected {FORMAT}"):
        async with open_sqlite_store(path):
            pass


async def test_closing_waits_for_a_call_that_was_cancelled(tmp_path: Path) -> None:
    """A write that goes on in its thread after its caller was cancelled does not meet a closed file."""
    for _ in range(10):
        async with open_sqlite_store(tmp_path / "memory.sqlite") as store:
            writing = asyncio.create_task(store.put_outgoing("turn:1", message("m1", content="x" * 100_000)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    async with open_sqlite_store(tmp_path / "memory.sqlite") as store:
        assert (await store.outgoing(COMM)).get("turn:1") in (None, message("m1", content="x" * 100_000))


def _long(entries: int) -> list[SequencedEntry]:
    """A group in which little happens, many times."""
    first, second = sequenced()[:2]
    more = [second.model_copy(update={"seq": 7 * n, "previous_seq": 7 * (n - 1)}) for n in range(2, entries + 1)]
    return [first, *more]


async def test_a_listener_that_never_acts_is_written_too(tmp_path: Path) -> None:
    """Of a group that is only followed a kill takes a bounded number of entries, which are read again in one request."""
    path, story = tmp_path / "memory.sqlite", _long(500)
    async with open_sqlite_store(path) as store:
        for entry in story:
            await store.append(entry)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            [written] = database.execute("SELECT cursor FROM groups").fetchone()
            [rows] = database.execute("SELECT count(*) FROM entries").fetchone()

    assert (story[-1].seq - written <= 7 * 32, rows < len(story) / 10) == (True, True)


async def test_an_orderly_end_writes_everything(tmp_path: Path) -> None:
    """What was taken in is in the file when it is closed."""
    path, story = tmp_path / "memory.sqlite", _long(50)
    async with open_sqlite_store(path) as store:
        for entry in story:
            await store.append(entry)
    async with open_sqlite_store(path) as store:
        assert await store.entries(COMM) == story


async def test_a_long_group_is_read_by_pages(tmp_path: Path) -> None:
    """No page holds far more than a megabyte, all of them hold everything once, and each place in between may be asked for."""
    path, story = tmp_path / "memory.sqlite", _long(500)
    said = [entry.model_copy(update={"entry": entry.entry.model_copy(update={"audience": _MANY})}) for entry in story]
    async with open_sqlite_store(path) as store:
        for entry in said:
            await store.append(entry)
    pages, after = [], 0
    async with open_sqlite_store(path) as store:
        while page := await store.entries(COMM, after=after):
            pages.append(page)
            after = page[-1].seq
        again = await store.entries(COMM, after=said[40].seq)

    assert [entry for page in pages for entry in page] == said
    assert (len(pages) > 1, max(sum(len(encode(entry)) for entry in page) for page in pages) < 2_500_000) == (True, True)
    assert [*again] == said[41 : 41 + len(again)]


async def test_a_full_disk_loses_nothing_that_was_taken_in(tmp_path: Path) -> None:
    """While the file cannot grow some entries wait, and then calls fail; when it can again, all are written, in order and once."""
    path, story = tmp_path / "memory.sqlite", _long(200)
    async with open_sqlite_store(path) as store:
        await store.append(story[0])
        await store.put_outgoing("turn:1", message("m1"))
        assert store._connection is not None
        store._connection.execute("PRAGMA max_page_count = 1")
        taken = 1
        with pytest.raises(UnavailableError, match="full"):
            for entry in story[1:]:
                await store.append(entry.model_copy(update={"entry": entry.entry.model_copy(update={"audience": _MANY})}))
                taken += 1
        with pytest.raises(UnavailableError, match="full"):
            await store.put_outgoing("turn:2", message("m2"))
        store._connection.execute("PRAGMA max_page_count = 100000")
        applied = [await store.append(entry) for entry in story[taken:]]
        kept = [entry.seq for entry in await store.entries(COMM)]
    async with open_sqlite_store(path) as store:
        again = [entry.seq for entry in await store.entries(COMM)]

    assert (1 < taken < 50, set(applied), kept, again) == (True, {True}, [entry.seq for entry in story], kept)


async def test_a_group_whose_memory_is_put_aside_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Its next entry is refused, so that whoever follows it asks the log again, and no entry is kept without those before it."""
    path, story = tmp_path / "memory.sqlite", sequenced()
    await _fill(path)
    with capture_logs() as lines:
        async with open_sqlite_store(path) as store:
            for entry in story[:2]:
                await store.append(entry)
            await store.put_outgoing("turn:1", message("m1"))
            await store.append(story[2])
            _damage(path)
            await store.entries(CommId("room-9"))  # far enough from what was written, which SQLite has in memory
            refused = await store.append(story[3])
            found = await store.entries(COMM)
            again = [await store.append(entry) for entry in story]

    assert (refused, found, set(again), {line["event"] for line in lines}) == (False, [], {True}, {"memory_damaged"})


async def test_an_entry_that_cannot_be_read_has_its_group_forgotten_and_nothing_else(tmp_path: Path) -> None:
    """Somebody may have said in one group what another version takes, and this one does not: no result of others' tasks is lost."""
    path, story = tmp_path / "memory.sqlite", sequenced()
    strange = encode(story[0]).replace(b"audience", b"audienze")
    async with open_sqlite_store(path) as store:
        await store.note_session(SessionId("s1"))
        await store.append(story[0])
        await store.finish_task(CommId("another"), result("done"))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE entries SET data = ? WHERE comm_id = ?", (sqlite_file.packed(strange, b""), COMM))
    with capture_logs() as lines:
        async with open_sqlite_store(path) as store:
            found = await store.entries(COMM)
            kept = await store.finished_task(CommId("another"), TaskId("t1")), await store.last_session()
            again = [await store.append(entry) for entry in story]
    assert (found, kept, set(again)) == ((), (result("done"), "s1"), {True})
    assert [line["event"] for line in lines] == ["group_not_remembered"]
