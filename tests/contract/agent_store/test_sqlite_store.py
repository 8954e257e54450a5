"""An agent's memory: the task journal, session and proof, contacts and private memory survive the process."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.sqlite_store import FORMAT, Passage, SqliteStore, open_sqlite_store
from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.brain_types import Contact
from ioa.protocol.ids import CommId, SessionId, TaskId
from ioa.protocol.messages import InformTaskResult
from tests.unit.group.scenario import COMM, START, card

OTHER, T1, BOB = CommId("another-room"), TaskId("t1"), "bob"
LATER = START + timedelta(hours=1)

_WRITER = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from ioa.adapters.sqlite_store import open_sqlite_store
from ioa.protocol.ids import CommId, TaskId
from ioa.protocol.messages import InformTaskResult

async def main():
    async with open_sqlite_store(Path(sys.argv[1])) as store:
        for number in range(100_000):
            comm_id, launched = CommId(f"room-{number}"), datetime.fromtimestamp(0, UTC)
            await store.begin_task(comm_id, launched, TaskId("t1"))
            await store.finish_task(comm_id, launched, InformTaskResult(task_id=TaskId("t1"), task_conclusion=str(number)))
            print(number, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The memory's file."""
    return tmp_path / "memory.sqlite"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """An empty memory."""
    async with open_sqlite_store(path) as opened:
        yield opened


def result(content: str) -> InformTaskResult:
    """A task's result."""
    return InformTaskResult(task_id=T1, task_conclusion=content)


async def test_attempts_are_counted_by_task_and_launch(store: SqliteStore) -> None:
    """A group of the same goal that was launched again has its own attempts."""
    begun = ((COMM, START), (COMM, START), (OTHER, START), (COMM, LATER), (COMM, START))
    attempts = [await store.begin_task(comm_id, launched, T1) for comm_id, launched in begun]

    assert (attempts, set(await store.open_groups())) == ([1, 2, 1, 1, 3], {COMM, OTHER})


async def test_first_result_of_a_task_is_kept(store: SqliteStore) -> None:
    """A journalled result is never replaced, and belongs to one launch of the group."""
    await store.begin_task(COMM, START, T1)
    before = await store.finished_task(COMM, START, T1)
    await store.finish_task(COMM, START, result("first"))
    await store.finish_task(COMM, START, result("second"))

    found = [await store.finished_task(*group, T1) for group in ((COMM, START), (COMM, LATER), (OTHER, START))]
    assert (before, found) == (None, [result("first"), None, None])


async def test_forgotten_group_leaves_other_groups_and_contacts(store: SqliteStore) -> None:
    """Tasks and thoughts of a group are deleted; passages stay until they are old."""
    for comm_id in (COMM, OTHER):
        await store.finish_task(comm_id, START, result("done"))
        await store.put_thought(comm_id, 1, "half a thought: \ud83d")
        await store.meet([Contact(card(BOB), 1, 0)])
        await store.remember("ada", [Passage(comm_id, "m1", f"a mill in {comm_id}")], START if comm_id == COMM else LATER)
    await store.forget_group(COMM, before=START)
    recalled = len(await store.recall("ada", "mill", 5, ()))
    await store.forget_group(COMM, before=LATER)

    found = [(await store.finished_task(room, START, T1), await store.thoughts(room)) for room in (COMM, OTHER)]
    kept = (result("done"), {1: "half a thought: ?"})
    assert (found, recalled, [one.comm_id for one in await store.recall("ada", "mill", 5, ())]) == ([(None, {}), kept], 2, [OTHER])
    assert ([one.tasks_done for one in await store.contacts()], await store.open_groups()) == ([2], {OTHER})


async def test_tasks_of_contacts_are_added(store: SqliteStore) -> None:
    """Two groups with the same agent add up, with its last card; the most successful agent comes first."""
    newer = card(BOB).model_copy(update={"version": "2"})
    first = [Contact(card(BOB), 2, 1), Contact(card("cy"), 0, 3)]
    second = [Contact(newer, 1, 0), Contact(card("eve"), 5, 0)]
    await store.meet(first)
    await store.meet(second)
    expected = [Contact(card("eve"), 5, 0), Contact(newer, 3, 1), Contact(card("cy"), 0, 3)]
    assert await store.contacts() == expected


async def test_session_and_first_proof_are_kept(store: SqliteStore, path: Path) -> None:
    """A later process finds the last session and the first proof."""
    before = await store.last_session()
    proofs = []
    for number in ("1", "2"):
        await store.note_session(SessionId(f"s-{number}"))
        proofs.append(await store.keep_proof(f"proof-{number}"))
    async with open_sqlite_store(path) as again:
        assert (before, proofs, await again.last_session()) == (None, ["proof-1"] * 2, "s-2")


async def test_passages_are_found_by_words_for_their_user(store: SqliteStore) -> None:
    """The best come first, without the shown ones; each is stored once, and deleted when it is struck."""
    here, there = CommId("here"), CommId("there")
    texts = [("m1", "the old mill burnt down"), ("m2", "a mill, a mill!"), ("m3", "nothing of it")]
    passages = [Passage(here, name, text) for name, text in texts]
    for _ in range(2):
        await store.remember("ada", passages, START)
    await store.remember("eve", [Passage(there, "m1", "the mill of Eve")], START)
    words = 'Who burnt the "old" mill? AND NOT (x:'
    assert [one.name for one in await store.recall("ada", words, 5, ())] == ["m1", "m2"]
    assert list(await store.recall("ada", "mill", 1, {(here, "m2")})) == passages[:1]
    assert list(await store.recall("ada", "?!", 5, ())) == []
    await store.keep_only(here, {"m2", "m3"})
    assert [one.name for one in await store.recall("ada", words, 5, ())] == ["m2"]
    assert [one.text for one in await store.recall("eve", "mill", 5, ())] == ["the mill of Eve"]


async def test_cancelled_call_leaves_the_memory_usable(path: Path) -> None:
    """Whenever a call is cancelled, the next one works, and the cancelled one is whole or undone before the memory is closed."""
    text = "x" * 100_000
    for rounds in range(40):
        async with open_sqlite_store(path) as store:
            writing = asyncio.create_task(store.put_thought(COMM, rounds, text))
            for _ in range(rounds % 5):
                await asyncio.sleep(0)
            writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    async with open_sqlite_store(path) as store:
        assert set((await store.thoughts(COMM)).values()) <= {text}


@pytest.mark.parametrize("acknowledged", [1, 7])
async def test_killed_process_leaves_what_was_acknowledged(path: Path, acknowledged: int) -> None:
    """After SIGKILL in the middle of writes, each acknowledged result is there."""
    writer = await asyncio.create_subprocess_exec(sys.executable, "-c", _WRITER, str(path), stdout=asyncio.subprocess.PIPE)
    assert writer.stdout is not None
    async with asyncio.timeout(30):
        numbers = [int(await writer.stdout.readline()) for _ in range(acknowledged)]
    os.kill(writer.pid, signal.SIGKILL)
    await writer.communicate()

    async with open_sqlite_store(path) as store:
        launched = START.fromtimestamp(0, START.tzinfo)
        kept = [await store.finished_task(CommId(f"room-{number}"), launched, T1) for number in numbers]
    assert kept == [result(str(number)) for number in numbers]


async def test_damaged_memory_is_reported_and_not_replaced(path: Path) -> None:
    """The error names the file and the fix; the file keeps its content."""
    letter = b"This is a letter, and not a database. " * 50
    await asyncio.to_thread(path.write_bytes, letter)
    with pytest.raises(UnavailableError, match="not a database") as reported:
        async with open_sqlite_store(path):
            pass

    assert (str(path) in reported.value.hint, await asyncio.to_thread(path.read_bytes)) == (True, letter)


async def test_memory_that_does_not_answer_is_unwell(path: Path) -> None:
    """The next answer makes it well."""
    store = SqliteStore(path, answers_within=timedelta(0))
    await asyncio.to_thread(path.mkdir)
    with pytest.raises(UnavailableError):
        await store.last_session()
    failing = store.is_well
    await asyncio.to_thread(path.rmdir)
    await store.last_session()

    assert (failing, store.is_well) == (False, True)


async def test_memory_of_other_format_is_rejected(path: Path) -> None:
    """The error names the file, both numbers and the fix."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")

    with pytest.raises(InvalidInputError, match=rf"memory.sqlite has format {FORMAT + 1}; expected {FORMAT}"):
        async with open_sqlite_store(path):
            pass
