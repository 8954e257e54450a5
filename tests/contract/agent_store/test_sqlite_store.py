"""What only a memory in a file can promise: surviving its process, and saying what is wrong with the file."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from ioa.adapters.sqlite_store import SCHEMA_VERSION, open_sqlite_store
from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.agent_store import Encounter
from ioa.ports.brain import Contact
from ioa.protocol.codec import encode
from ioa.protocol.ids import CommId, MessageId, TaskId
from ioa.protocol.outcomes import Outcome
from tests.contract.agent_store.stories import message, result, sequenced
from tests.unit.group.scenario import COMM, START, card

_FIRST_SCHEMA = """
CREATE TABLE groups (comm_id TEXT PRIMARY KEY, cursor INTEGER NOT NULL, met INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE entries (comm_id TEXT, seq INTEGER, data BLOB NOT NULL, PRIMARY KEY (comm_id, seq)) WITHOUT ROWID;
CREATE TABLE outbox (
  comm_id TEXT, key TEXT, message_id TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (comm_id, key)
) WITHOUT ROWID;
CREATE TABLE tasks (
  comm_id TEXT, task_id TEXT, attempt INTEGER NOT NULL, result BLOB, PRIMARY KEY (comm_id, task_id)
) WITHOUT ROWID;
CREATE TABLE contacts (agent_id TEXT PRIMARY KEY, card BLOB NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL);
PRAGMA user_version = 1;
"""
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


async def test_a_memory_opened_again_is_the_same(tmp_path: Path) -> None:
    """Everything a method returned from is there after the file was closed and opened."""
    path = tmp_path / "deep" / "memory.sqlite"
    async with open_sqlite_store(path) as store:
        await store.append(sequenced()[0])
        await store.put_outgoing("turn:1", message("m1"))
        await store.begin_task(COMM, TaskId("t1"))
        await store.finish_task(COMM, result("done"))

    async with open_sqlite_store(path) as store:
        found = (
            await store.entries(COMM),
            await store.outgoing(COMM, "turn:1"),
            await store.begin_task(COMM, TaskId("t1")),
            await store.finished_task(COMM, TaskId("t1")),
        )

    assert found == (sequenced()[:1], message("m1"), 2, result("done"))


@pytest.mark.parametrize("acknowledged", [1, 3, 7])
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
                await store.outgoing(CommId(f"room-{number}"), "turn:1"),
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


async def test_a_file_that_is_no_memory_is_refused(tmp_path: Path) -> None:
    """A file of another kind is left alone and named."""
    path = tmp_path / "memory.sqlite"
    path.write_bytes(b"This is a letter to a friend, and no database at all. " * 50)

    with pytest.raises(InvalidInputError, match="is not an agent's memory"):
        async with open_sqlite_store(path):
            pass


async def test_a_memory_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """An older program does not write into a newer file."""
    path = tmp_path / "memory.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()

    with pytest.raises(InvalidInputError, match=f"schema {SCHEMA_VERSION + 1}"):
        async with open_sqlite_store(path):
            pass


async def test_a_memory_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """A file of the first version keeps what it holds, and takes what came later."""
    path = tmp_path / "memory.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(_FIRST_SCHEMA)
        database.execute("INSERT INTO contacts VALUES (?, ?, 3, 1)", ("bob", encode(card("bob"))))
        database.execute("INSERT INTO groups VALUES (?, 7, 0)", (COMM,))
    database.close()
    outcome = Outcome(pool="bob", agent_id="bob", need="work", done=True, at=START, seconds=1.0)

    async with open_sqlite_store(path) as store:
        await store.meet(COMM, [Encounter(card("bob"), (outcome,))])
    async with open_sqlite_store(path) as store:
        known = list(await store.contacts())

    assert known == [Contact(card("bob"), 4, 1, (outcome,))]


async def test_a_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    """A path that cannot be opened is an error that a retry can help."""
    with pytest.raises(UnavailableError, match="cannot be opened"):
        async with open_sqlite_store(tmp_path):
            pass


async def test_a_full_disk_fails_calls_and_nothing_else(tmp_path: Path) -> None:
    """While the file cannot grow, writes say so; when it can again, they work, and nothing is half written."""
    path = tmp_path / "memory.sqlite"
    async with open_sqlite_store(path) as store:
        await store.put_outgoing("turn:1", message("m1"))
        assert store._connection is not None
        store._connection.execute("PRAGMA max_page_count = 1")  # the smallest that SQLite takes is the present size
        with pytest.raises(UnavailableError, match="full"):
            await store.put_outgoing("turn:2", message("m2", content="x" * 150_000))
        before = await store.outgoing(COMM, "turn:2")
        store._connection.execute("PRAGMA max_page_count = 100000")
        await store.put_outgoing("turn:2", message("m2", content="x" * 150_000))
        await store.drop_outgoing(COMM, MessageId("m1"))
        after = await store.outgoing(COMM, "turn:2")

    assert (before, after) == (None, message("m2", content="x" * 150_000))


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
        assert await store.outgoing(COMM, "turn:1") in (None, message("m1", content="x" * 100_000))
