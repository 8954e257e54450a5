"""An agent's memory in SQLite: one file, and every write one transaction that runs to its end in a thread.

A transaction costs more than all else an agent does with an entry, and nobody depends on an entry before the agent acts on it. So
what may be lost is taken in without one, and written with the next call that has something to keep.

How the file is made, and how entries lie in it, says `sqlite_file`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import structlog

from ioa.adapters.agent_memory import (
    MAX_REMEMBERED_BYTES,
    Encounter,
    Passage,
    StoredObservation,
    StoredSummary,
    newest_passages,
    query_words,
)
from ioa.adapters.sqlite_file import (
    NOT_SYNCED,
    READ_WITHIN,
    SYNCED,
    WINDOW_BYTES,
    DamagedFileError,
    check_file,
    decoded,
    entries_in,
    is_damage,
    open_file,
    packed,
    put_aside,
    read_from,
    unpacked_rows,
)
from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.group.state import Ended
from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import CommId, MessageId, SessionId, TaskId
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.outcomes import REMEMBERED, Outcome

_MAX_UNWRITTEN, _MAX_UNWRITTEN_BYTES = 32, 1024 * 1024
"""How many entries may wait for the disk, and how many bytes of them: what is written together is read together. Reading as many
again after a crash is one request."""

_SESSION, _EPOCH, _PROOF = "session", "epoch", "proof"
_OF_A_GROUP = ("entries", "outbox", "tasks", "observations", "thoughts", "summaries", "told", "groups")
_UNTIL_ENDED = ("outbox", "tasks")
_KEPT = """
SELECT comm_id, length(newest) AS size_bytes FROM groups
UNION ALL SELECT comm_id, length(data) FROM entries
UNION ALL SELECT comm_id, length(CAST(text AS BLOB)) FROM observations
UNION ALL SELECT comm_id, length(CAST(thought AS BLOB)) FROM thoughts
UNION ALL SELECT comm_id, length(covers) + length(CAST(text AS BLOB)) FROM summaries
UNION ALL SELECT comm_id, size_bytes FROM told
"""
"""How large is what is kept of groups that have ended, row by row."""
_PAGE_BYTES = 1024 * 1024
"""How much of a group is read at a time, at least, if it has that much: there may be far more of it than there is room for."""
_BEGINNING = (0, b"")
_MOST_BYTES = 256 * 1024 * 1024
"""How much may be kept of groups that have ended. What is kept of others is bounded while they are followed."""
_LOOKED_AFTER_BYTES = 64 * 1024 * 1024
"""How much is taken in until it is looked, when a group ends, whether that is too much."""
_AT_ONCE_SECONDS, _GIVEN_BACK_PAGES = 0.1, 2_000
"""For how long passages are kept and groups are forgotten at a time, and how many free pages are given back to the disk: a gigabyte
takes so long that the memory would count as unwell."""

_ANSWERS_WITHIN = timedelta(seconds=10)
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="memory")
"""Threads of all stores of the process, apart from the event loop's default threads, which other work can occupy."""
_PAGE_WITHIN = timedelta(minutes=1)
"""How long it may take to read a page of a group."""

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Applied:
    """An entry to be written."""

    comm_id: CommId
    previous_seq: int
    seq: int
    ended_at: float | None
    data: bytes


@dataclass(frozen=True)
class _Answered:
    """A message to be forgotten."""

    comm_id: CommId
    message_id: MessageId


class _Told(NamedTuple):
    """A passage that is kept: its row, what names it in its group, and its size."""

    passage: int
    name: str
    size_bytes: int


class _NotReadError(Exception):
    """An entry is as it was written, and cannot be read: another version of this program has read and written it."""


class SqliteStore:
    """An agent's memory. A thread takes each transaction from beginning to end, so that a cancelled call leaves none open.

    Calls take effect in the order in which they were made, cancelled ones included: with whatever is written, all that was taken in
    before is written. The first call that is about a group leaves the file open: an open file costs more memory than all else of an
    idle agent.

    Args:
        path: The file.
        answers_within: How long calls may fail or hang before the memory is called unwell.
    """

    def __init__(self, path: Path, *, answers_within: timedelta = _ANSWERS_WITHIN) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._turn, self._reading = asyncio.Lock(), asyncio.Lock()
        self._answers_within = answers_within.total_seconds()
        self._unanswered_since: float | None = None
        self._unwritten: list[_Applied | _Answered] = []
        self._cursors: dict[CommId, int] = {}
        """The last sequence that was applied in each group that is followed, written or not."""
        self._places: dict[CommId, tuple[int, bytes]] = {}
        """The last row of each group that is being read: its sequence, and what it ends in, by which the next is unpacked."""
        self._was_put_aside = False
        self._grown_bytes = 0
        """How much was taken in since it was looked how much is kept."""

    @property
    def is_well(self) -> bool:
        """Whether the memory has answered lately, or was not asked."""
        since = self._unanswered_since
        return since is None or time.monotonic() - since < self._answers_within

    async def last_session(self) -> SessionId | None:
        """Return the session that was noted last."""
        session = await self._fact(_SESSION)
        return None if session is None else SessionId(session)

    async def note_session(self, session: SessionId) -> None:
        """Note a session."""
        await self._note_fact(_SESSION, session)

    async def keep_proof(self, drawn: str) -> str:
        """Note the proof if none is noted. Nobody else writes into the file between the two."""
        known = await self._fact(_PROOF)
        if known is None:
            await self._note_fact(_PROOF, drawn)
        return known or drawn

    async def prune(self, before: datetime) -> int:
        """Forget the groups that ended before an instant, and give their room back; how many they were.

        If what is kept of groups that have ended is very much, the largest of those that ended later go as well: whoever speaks to
        the agent for an hour would fill its disk for a day, and it would remember nothing any more.
        """
        if not await self._in_thread(self._path.exists):
            return 0

        self._grown_bytes = 0
        is_large = (await self._in_thread(self._path.stat)).st_size > _MOST_BYTES

        def ended(db: sqlite3.Connection) -> list[CommId]:
            old = [comm_id for (comm_id,) in db.execute("SELECT comm_id FROM groups WHERE ended_at < ?", (before.timestamp(),))]
            return [*old, *(_largest_ended(db, but=old) if is_large else ())]

        def shrink(db: sqlite3.Connection) -> None:
            db.executescript("PRAGMA wal_checkpoint(TRUNCATE);")

        tidied = 0
        while some := await self._transaction(_tidy_some, synced=False, stay_open=False):
            tidied += some
        old = await self._transaction(ended, stay_open=False)
        if not (tidied or old):
            return 0
        await self._forget_each(old, synced=False, stay_open=False)
        while await self._transaction(_give_back_some, synced=False, stay_open=False):
            pass
        await self._transaction(lambda _: None, stay_open=False, then=shrink)
        return len(old)

    async def open_groups(self) -> Collection[CommId]:
        """Return the groups without an end."""

        def read(db: sqlite3.Connection) -> set[CommId]:
            return {comm_id for (comm_id,) in db.execute("SELECT comm_id FROM groups WHERE ended_at IS NULL")}

        return await self._transaction(read, stay_open=False)

    async def end_group(self, comm_id: CommId, at: datetime) -> None:
        """Take a group as ended; what is to be packed with its next row stays."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("UPDATE groups SET ended_at = ? WHERE comm_id = ? AND ended_at IS NULL", (at.timestamp(), comm_id))
            _forget_duties(db, comm_id)

        await self._transaction(write, stay_open=False)
        self._lose_place(comm_id)

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply an entry if it follows the cursor. The last of its group is written before this returns, with all before it."""
        state = entry.entry.state
        comm_id, ended_at = state.comm_id, state.stage.ended_at.timestamp() if isinstance(state.stage, Ended) else None
        if comm_id not in self._cursors:
            cursor = await self._transaction(lambda db: _cursor(db, comm_id))
            self._cursors.setdefault(comm_id, cursor)
        if self._cursors[comm_id] != entry.previous_seq:
            return False
        applied = _Applied(comm_id, entry.previous_seq, entry.seq, ended_at, encode(entry))
        self._grown_bytes += len(applied.data)
        if ended_at is None and self._may_wait(applied):
            self._unwritten.append(applied)
            self._cursors[comm_id] = entry.seq
            return True
        del self._cursors[comm_id]  # whether this call succeeds or not, the file knows
        is_applied = await self._transaction(lambda db: _write_entries(db, [applied]), synced=ended_at is not None)
        if ended_at is not None and self._grown_bytes > _LOOKED_AFTER_BYTES:
            with suppress(UnavailableError):  # it is looked again later
                await self.prune(datetime.fromtimestamp(0, UTC))
        return is_applied

    async def entries(self, comm_id: CommId, *, after: int = 0) -> Sequence[SequencedEntry]:
        """Return the entries behind a sequence, of as many rows as hold a page; none of a group of which one cannot be read.

        It is read beside what is written: an agent that starts reads all that it has heard in its groups, whoever spoke in them for
        hours. What cannot be read concerns its group alone, of which the log is the record.
        """
        if self._unwritten:
            await self._transaction(lambda _: None)
        known = self._places.pop(comm_id, _BEGINNING)
        begin = known if known[0] <= after else _BEGINNING

        def read(db: sqlite3.Connection) -> tuple[list[SequencedEntry], tuple[int, bytes]]:
            page, size_bytes, seq, row = list[SequencedEntry](), 0, 0, b""
            for seq, row in unpacked_rows(db, comm_id, *begin):
                if seq <= after:
                    continue
                entries = [_entry_of(data) for data in entries_in(comm_id, row)]
                page += [entry for entry in entries if entry.seq > after]
                size_bytes += len(row)
                if size_bytes >= _PAGE_BYTES:
                    break
            return page, (seq, row[-WINDOW_BYTES:])

        try:
            page, place = await self._read_beside(read, _PAGE_WITHIN)
        except _NotReadError as error:
            _log.warning("group_not_remembered", comm_id=comm_id, why=str(error))
            await self.forget_group(comm_id)
            return ()
        if page:
            self._places[comm_id] = place
        return page

    def _may_wait(self, applied: _Applied) -> bool:
        """Whether one more entry may wait for the disk."""
        waiting = [one for one in self._unwritten if isinstance(one, _Applied)]
        size_bytes = sum([len(one.data) for one in waiting]) + len(applied.data)
        return len(self._unwritten) < _MAX_UNWRITTEN and size_bytes <= _MAX_UNWRITTEN_BYTES

    async def put_outgoing(self, key: str, message: Message) -> Message:
        """Keep a message until it is answered, unless there is one under its duty's key."""
        header, data = message.header, encode(message)

        def write(db: sqlite3.Connection) -> Message:
            db.execute("INSERT OR IGNORE INTO outbox VALUES (?, ?, ?, ?)", (header.comm_id, key, header.message_id, data))
            row = db.execute("SELECT data FROM outbox WHERE comm_id = ? AND key = ?", (header.comm_id, key)).fetchone()
            return message if row[0] == data else decoded(Message, row[0])

        return await self._transaction(write, synced=False)

    async def outgoing(self, comm_id: CommId) -> Mapping[str, Message]:
        """Return the messages of a group that were not answered, by the keys of their duties."""

        def read(db: sqlite3.Connection) -> dict[str, Message]:
            rows = db.execute("SELECT key, data FROM outbox WHERE comm_id = ?", (comm_id,))
            return {key: decoded(Message, data) for key, data in rows}

        return await self._transaction(read)

    async def drop_outgoing(self, comm_id: CommId, message_id: MessageId) -> None:
        """Forget a message that was answered."""
        self._unwritten.append(_Answered(comm_id, message_id))

    async def begin_task(self, comm_id: CommId, task_id: TaskId) -> int:
        """Count an attempt."""

        def write(db: sqlite3.Connection) -> int:
            db.execute(
                "INSERT INTO tasks VALUES (?, ?, 1, NULL) ON CONFLICT DO UPDATE SET attempt = attempt + 1", (comm_id, task_id)
            )
            row = db.execute("SELECT attempt FROM tasks WHERE comm_id = ? AND task_id = ?", (comm_id, task_id)).fetchone()
            return int(row[0])

        return await self._transaction(write)

    async def finish_task(self, comm_id: CommId, result: InformTaskResult) -> None:
        """Journal a result; the first one stands."""
        data = encode(result)

        def write(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO tasks VALUES (?1, ?2, 1, ?3) ON CONFLICT DO UPDATE SET result = coalesce(result, ?3)",
                (comm_id, result.task_id, data),
            )

        await self._transaction(write)

    async def finished_task(self, comm_id: CommId, task_id: TaskId) -> InformTaskResult | None:
        """Return the journalled result."""

        def read(db: sqlite3.Connection) -> InformTaskResult | None:
            row = db.execute("SELECT result FROM tasks WHERE comm_id = ? AND task_id = ?", (comm_id, task_id)).fetchone()
            return decoded(InformTaskResult, row[0]) if row and row[0] is not None else None

        return await self._transaction(read)

    async def put_observation(self, comm_id: CommId, seen: StoredObservation) -> None:
        """Keep what was seen last; half of a character, which no text file can hold, becomes a question mark."""
        text = seen.text.encode("utf-8", "replace").decode()

        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO observations VALUES (?, ?, ?)", (comm_id, seen.turn, text))

        await self._transaction(write, synced=False)

    async def observation(self, comm_id: CommId) -> StoredObservation | None:
        """Return what was seen last."""

        def read(db: sqlite3.Connection) -> StoredObservation | None:
            row = db.execute("SELECT turn, text FROM observations WHERE comm_id = ?", (comm_id,)).fetchone()
            return None if row is None else StoredObservation(int(row[0]), str(row[1]))

        return await self._transaction(read)

    async def put_thought(self, comm_id: CommId, turn: int, thought: str) -> None:
        """Keep what was thought in a turn; the message of the turn, which is written next, makes it survive a power cut."""
        text = thought.encode("utf-8", "replace").decode()

        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO thoughts VALUES (?, ?, ?)", (comm_id, turn, text))

        await self._transaction(write, synced=False)

    async def thoughts(self, comm_id: CommId) -> Mapping[int, str]:
        """Return what was thought, by turn."""

        def read(db: sqlite3.Connection) -> dict[int, str]:
            rows = db.execute("SELECT turn, thought FROM thoughts WHERE comm_id = ?", (comm_id,))
            return {int(turn): str(thought) for turn, thought in rows}

        return await self._transaction(read)

    async def put_summary(self, comm_id: CommId, summary: StoredSummary) -> None:
        """Keep what was said in short."""
        text = summary.text.encode("utf-8", "replace").decode()

        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?)", (comm_id, " ".join(sorted(summary.covers)), text))

        await self._transaction(write)

    async def summary(self, comm_id: CommId) -> StoredSummary | None:
        """Return what was said in short."""

        def read(db: sqlite3.Connection) -> StoredSummary | None:
            row = db.execute("SELECT covers, text FROM summaries WHERE comm_id = ?", (comm_id,)).fetchone()
            return None if row is None else StoredSummary(frozenset(row[0].split()), row[1])

        return await self._transaction(read)

    async def remember(self, user: str, comm_id: CommId, passages: Sequence[Passage]) -> None:
        """Keep the newest passages, each once, some at a time: of megabytes it takes longer than an agent may be without memory."""
        newest = newest_passages(passages)
        while not await self._transaction(partial(_remember_some, user=user, comm_id=comm_id, newest=newest), synced=False):
            pass

    async def keep_only(self, comm_id: CommId, there: Collection[str]) -> None:
        """Forget what was struck, some at a time."""

        def write(db: sqlite3.Connection) -> bool:
            covered = db.execute("SELECT covers FROM summaries WHERE comm_id = ?", (comm_id,)).fetchone()
            if covered is not None and not {*covered[0].split()} <= {*there}:
                db.execute("DELETE FROM summaries WHERE comm_id = ?", (comm_id,))
            struck = [told for told in _told(db, comm_id) if told.name not in there]
            return _drop_some(db, comm_id, struck, _a_while())

        while not await self._transaction(write):
            pass

    async def recall(self, user: str, words: str, most: int, shown: Collection[tuple[CommId, str]]) -> Sequence[Passage]:
        """Find passages by BM25; of those that fit alike the newer ones.

        It takes the longer the more there are, a third of a second of 20,000: so nothing that is written meanwhile waits for it.
        """
        asked = " OR ".join(f'"{word}"' for word in query_words(words))

        def read(db: sqlite3.Connection) -> list[Passage]:
            found = "SELECT comm_id, name, text FROM passages WHERE passages MATCH ? AND user = ? ORDER BY rank, rowid DESC LIMIT ?"
            rows = db.execute(found, (f"text : ({asked})", user, most + len(shown)))
            passages = [Passage(CommId(comm_id), name, text) for comm_id, name, text in rows]
            return [one for one in passages if (one.comm_id, one.name) not in shown][:most]

        return await self._read_beside(read) if asked else ()

    async def meet(self, comm_id: CommId, encounters: Sequence[Encounter]) -> bool:
        """Add up how others did, once for each group."""

        def write(db: sqlite3.Connection) -> bool:
            if not db.execute("UPDATE groups SET met = 1 WHERE comm_id = ? AND met = 0", (comm_id,)).rowcount:
                return False
            for met in encounters:
                _meet(db, met)
            return True

        return await self._transaction(write)

    async def contacts(self) -> Sequence[Contact]:
        """Everybody met, the most successful first."""

        def read(db: sqlite3.Connection) -> list[Contact]:
            outcomes: dict[str, list[Outcome]] = defaultdict(list)
            for agent_id, data in db.execute("SELECT agent_id, data FROM outcomes ORDER BY number"):
                outcomes[agent_id].append(decoded(Outcome, data))
            rows = db.execute("SELECT card, done, failed, agent_id FROM contacts ORDER BY done - failed DESC, agent_id")
            return [
                Contact(decoded(AgentCard, card), done, failed, tuple(outcomes[agent_id])) for card, done, failed, agent_id in rows
            ]

        return await self._transaction(read)

    async def epoch(self) -> str | None:
        """Return what was noted."""
        return await self._fact(_EPOCH)

    async def note_epoch(self, epoch: str) -> None:
        """Note to which store of logs the memory belongs."""
        await self._note_fact(_EPOCH, epoch)

    async def forget_groups(self) -> None:
        """Forget every group, and first what takes long to forget."""

        def read(db: sqlite3.Connection) -> list[CommId]:
            return [comm_id for (comm_id,) in db.execute("SELECT DISTINCT comm_id FROM told")]

        def write(db: sqlite3.Connection) -> None:
            for table in (*_OF_A_GROUP, "passages"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - a name from above

        await self._forget_each(await self._transaction(read))
        await self._transaction(write)
        self._cursors.clear()
        self._places.clear()

    async def forget_group(self, comm_id: CommId) -> None:
        """Forget one group."""
        await self._forget_each([comm_id])

    async def _forget_each(self, comm_ids: Sequence[CommId], *, synced: bool = True, stay_open: bool = True) -> None:
        """Forget groups little by little: of what strangers said in them there may be gigabytes."""
        done = 0
        while done < len(comm_ids):
            forget = partial(_forget_some, comm_ids=comm_ids[done:])
            done += await self._transaction(forget, synced=synced, stay_open=stay_open)
        for comm_id in comm_ids:
            self._lose_place(comm_id)

    def _lose_place(self, comm_id: CommId) -> None:
        """Have the file say how far a group is known."""
        self._cursors.pop(comm_id, None)
        self._places.pop(comm_id, None)

    async def _fact(self, name: str) -> str | None:
        def read(db: sqlite3.Connection) -> str | None:
            row = db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            return str(row[0]) if row else None

        return await self._transaction(read, stay_open=False)

    async def _note_fact(self, name: str, value: str) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

        await self._transaction(write, stay_open=False)

    async def _transaction(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        synced: bool = True,
        stay_open: bool = True,
        then: Callable[[sqlite3.Connection], None] | None = None,
    ) -> T:
        """Write what was taken in and do `work`, between BEGIN and COMMIT. Who cancels does not wait for it, but the next one does.

        Args:
            work: What to do. It is done again, on a fresh file, if the file turns out to be damaged.
            synced: Whether it is to survive a power cut, and not only the process.
            stay_open: Whether the file is kept open if this call had to open it.
            then: What to do after COMMIT, outside of a transaction.
        """
        await self._turn.acquire()
        unwritten = tuple(self._unwritten)

        def once(db: sqlite3.Connection) -> T:
            _write(db, unwritten)
            return work(db)

        def run() -> T:
            if self._unanswered_since is None:
                self._unanswered_since = time.monotonic()
            opened_here = self._connection is None
            answer = self._on_sound_file(once, synced, then)
            if opened_here and not stay_open:
                self._close()
            self._unanswered_since = None
            return answer

        running = self._in_thread(run)
        running.add_done_callback(partial(self._settle, len(unwritten)))
        try:
            return await asyncio.shield(running)
        except (sqlite3.Error, OSError) as error:
            raise UnavailableError(
                f"The agent's memory cannot be used: {error}.", hint="Is the disk full or the file read-only?"
            ) from error

    async def _read_beside(self, read: Callable[[sqlite3.Connection], T], within: timedelta = READ_WITHIN) -> T:
        """Read what was written, by a connection of its own: one at a time, and for no longer than a while.

        Who cancels does not wait for it, but the next one does.

        Raises:
            UnavailableError: It takes too long, or the file cannot be read.
        """
        if self._connection is None:
            return await self._transaction(read)  # which opens the file, or makes it
        await self._reading.acquire()
        running = self._in_thread(read_from, self._path, read, within)
        running.add_done_callback(self._settle_reading)
        try:
            return await asyncio.shield(running)
        except (sqlite3.Error, OSError, DamagedFileError) as error:
            if not is_damage(error):
                raise UnavailableError(f"The agent's memory cannot be read now: {error}.") from error
        return await self._transaction(read)  # which puts the file aside

    def _settle_reading(self, ran: asyncio.Future[T]) -> None:
        if not ran.cancelled():
            ran.exception()  # who has gone does not hear of it
        self._reading.release()

    def _settle(self, written: int, ran: asyncio.Future[T]) -> None:
        """Let the next call have its turn. What was written with this one waits no more, unless it has failed."""
        if not ran.cancelled() and ran.exception() is None:
            del self._unwritten[:written]
        if self._was_put_aside:
            self._was_put_aside = False
            self._cursors.clear()  # the fresh file says what it holds
            self._places.clear()
        self._turn.release()

    def _on_sound_file(
        self, work: Callable[[sqlite3.Connection], T], synced: bool, then: Callable[[sqlite3.Connection], None] | None
    ) -> T:
        try:
            return self._once(work, synced, then)
        except (DamagedFileError, sqlite3.DatabaseError) as error:
            if not is_damage(error):
                raise
            self._close()
            put_aside(self._path, error)
            self._was_put_aside = True
        return self._once(work, synced, then)

    def _once(self, work: Callable[[sqlite3.Connection], T], synced: bool, then: Callable[[sqlite3.Connection], None] | None) -> T:
        if self._connection is None:
            self._connection = open_file(self._path)
        self._connection.execute(SYNCED if synced else NOT_SYNCED)
        with self._connection as db:
            db.execute("BEGIN IMMEDIATE")
            answer = work(db)
        if then is not None:
            then(db)
        return answer

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def aclose(self) -> None:
        """Write what was taken in, if that is possible, and close the file when the call that is running has ended."""
        if self._unwritten:
            with suppress(UnavailableError):  # it is in the log
                await self._transaction(lambda _: None)
        async with self._turn, self._reading:
            await self._in_thread(self._close)

    def _in_thread(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(_THREADS, work, *arguments)


@asynccontextmanager
async def open_sqlite_store(path: Path) -> AsyncIterator[SqliteStore]:
    """Open or make an agent's memory at `path`. At an orderly end all that it was told is in the file.

    A file that is damaged, or no memory at all, is put aside.

    Raises:
        InvalidInputError: The file has another format.
        UnavailableError: The file cannot be opened.
    """
    store = SqliteStore(path)
    try:
        await asyncio.to_thread(check_file, path)
    except (sqlite3.Error, OSError) as error:
        raise UnavailableError(f"The agent's memory {path} cannot be opened: {error}.") from error
    try:
        yield store
    finally:
        await store.aclose()


def _entry_of(data: bytes) -> SequencedEntry:
    try:
        return decode(SequencedEntry, data)
    except InvalidInputError as error:
        raise _NotReadError(error.message) from error


def _write(db: sqlite3.Connection, unwritten: Sequence[_Applied | _Answered]) -> None:
    """Write what was taken in. In which order groups come makes no difference."""
    of_group: dict[CommId, list[_Applied]] = defaultdict(list)
    for one in unwritten:
        if isinstance(one, _Applied):
            of_group[one.comm_id].append(one)
    for applied in of_group.values():
        _write_entries(db, applied)
    answered = [(one.comm_id, one.message_id) for one in unwritten if isinstance(one, _Answered)]
    if answered:
        db.executemany("DELETE FROM outbox WHERE comm_id = ? AND message_id = ?", answered)


def _write_entries(db: sqlite3.Connection, applied: Sequence[_Applied]) -> bool:
    """Write entries of one group that follow each other, as one row; False if they do not follow what the file holds."""
    first, last = applied[0], applied[-1]
    row = db.execute("SELECT cursor, newest FROM groups WHERE comm_id = ?", (first.comm_id,)).fetchone()
    cursor, newest = row or (0, None)
    if cursor != first.previous_seq:
        return False
    data = b"".join(one.data for one in applied)
    db.execute(
        "INSERT INTO groups (comm_id, cursor, ended_at, newest) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (comm_id) DO UPDATE SET cursor = ?2, ended_at = ?3, newest = ?4",
        (first.comm_id, last.seq, last.ended_at, data[-WINDOW_BYTES:] if last.ended_at is None else None),
    )
    db.execute("INSERT INTO entries VALUES (?, ?, ?)", (first.comm_id, last.seq, packed(data, newest or b"")))
    if last.ended_at is not None:
        _forget_duties(db, first.comm_id)
    return True


def _forget_duties(db: sqlite3.Connection, comm_id: CommId) -> None:
    """Delete what was still to be said in a group that has ended, and results of its tasks: nobody is told them any more."""
    for table in _UNTIL_ENDED:
        db.execute(f"DELETE FROM {table} WHERE comm_id = ?", (comm_id,))  # noqa: S608 - a name from above


def _tidy_some(db: sqlite3.Connection) -> int:
    """Forget duties of groups that have ended until that has taken a while; of how many.

    A task that ends with its group may write its result after the end.
    """
    until = _a_while()
    ended = db.execute("SELECT DISTINCT comm_id FROM tasks JOIN groups USING (comm_id) WHERE ended_at IS NOT NULL").fetchall()
    for number, (comm_id,) in enumerate(ended, start=1):
        _forget_duties(db, comm_id)
        if time.monotonic() > until:
            return number
    return len(ended)


def _cursor(db: sqlite3.Connection, comm_id: CommId) -> int:
    """Return the sequence of the last entry that the file holds of a group."""
    row = db.execute("SELECT cursor FROM groups WHERE comm_id = ?", (comm_id,)).fetchone()
    return int(row[0]) if row else 0


def _told(db: sqlite3.Connection, comm_id: CommId) -> list[_Told]:
    """Return what is kept of a group's passages, the newest first."""
    kept = "SELECT passage, name, size_bytes FROM told WHERE comm_id = ? ORDER BY passage DESC"
    return [_Told(*row) for row in db.execute(kept, (comm_id,))]


def _a_while() -> float:
    """Return until when others may be kept waiting."""
    return time.monotonic() + _AT_ONCE_SECONDS


def _remember_some(db: sqlite3.Connection, user: str, comm_id: CommId, newest: Sequence[Passage]) -> bool:
    """Keep passages, and drop older ones for which they leave no room, until that has taken a while; whether that is all."""
    until, told, there = _a_while(), _told(db, comm_id), {one.name for one in newest}
    older = [one for one in told if one.name not in there]
    sizes = accumulate([one.size_bytes for one in older], initial=sum(one.size_bytes for one in newest))
    too_old = [one for one, size_bytes in zip(older, islice(sizes, 1, None), strict=True) if size_bytes > MAX_REMEMBERED_BYTES]
    if not _drop_some(db, comm_id, too_old, until):
        return False
    known = {one.name for one in told}
    new = {one.name: one for one in newest if one.name not in known}
    for number, (name, one) in enumerate(new.items(), start=1):
        text = one.text.encode("utf-8", "replace").decode()
        passage = db.execute("INSERT INTO passages VALUES (?, ?, ?, ?)", (comm_id, name, user, text)).lastrowid
        db.execute("INSERT INTO told VALUES (?, ?, ?, ?)", (comm_id, name, passage, one.size_bytes))
        if time.monotonic() > until:
            return number == len(new)
    return True


def _drop_some(db: sqlite3.Connection, comm_id: CommId, told: Sequence[_Told], until: float) -> bool:
    """Delete passages of a group until an instant, at least one; whether those are all."""
    for number, one in enumerate(told, start=1):
        db.execute("DELETE FROM passages WHERE rowid = ?", (one.passage,))
        db.execute("DELETE FROM told WHERE comm_id = ? AND name = ?", (comm_id, one.name))
        if time.monotonic() > until:
            return number == len(told)
    return True


def _largest_ended(db: sqlite3.Connection, *, but: Collection[CommId]) -> Sequence[CommId]:
    """Return the ended groups to forget until what is left of such is not too much, the largest first: each for its own size."""
    of_ended = f"SELECT comm_id, total(size_bytes) FROM ({_KEPT}) JOIN groups USING (comm_id) WHERE ended_at IS NOT NULL"  # noqa: S608
    sizes = {comm_id: size for comm_id, size in db.execute(f"{of_ended} GROUP BY comm_id") if comm_id not in but}
    left = sum(sizes.values())
    found: list[CommId] = []
    for comm_id in sorted(sizes, key=lambda one: -sizes[one]):
        if left <= _MOST_BYTES:
            break
        found.append(comm_id)
        left -= sizes[comm_id]
    return found


def _forget_some(db: sqlite3.Connection, comm_ids: Sequence[CommId]) -> int:
    """Delete what is kept of groups until that has taken a while; of how many it is gone. Of the next some passages may be."""
    until = _a_while()
    for done, comm_id in enumerate(comm_ids):
        if not _drop_some(db, comm_id, _told(db, comm_id), until):
            return done
        for table in _OF_A_GROUP:
            db.execute(f"DELETE FROM {table} WHERE comm_id = ?", (comm_id,))  # noqa: S608 - a name from above
        if time.monotonic() > until:
            return done + 1
    return len(comm_ids)


def _give_back_some(db: sqlite3.Connection) -> bool:
    """Give the room of some pages that are free back to the disk; whether there are more."""
    [free] = db.execute("PRAGMA freelist_count").fetchone()
    for _ in db.execute(f"PRAGMA incremental_vacuum({_GIVEN_BACK_PAGES})"):
        pass  # each step frees one page
    [left] = db.execute("PRAGMA freelist_count").fetchone()
    return bool(0 < left < free)


def _meet(db: sqlite3.Connection, met: Encounter) -> None:
    """Add up how one agent did, and keep its last outcomes."""
    agent_id, done = met.card.agent_id, sum(outcome.done for outcome in met.outcomes)
    db.execute(
        "INSERT INTO contacts VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET card = ?2, done = done + ?3, failed = failed + ?4",
        (agent_id, encode(met.card), done, len(met.outcomes) - done),
    )
    db.executemany("INSERT INTO outcomes (agent_id, data) VALUES (?, ?)", [(agent_id, encode(outcome)) for outcome in met.outcomes])
    db.execute(
        "DELETE FROM outcomes WHERE agent_id = ?1 AND number NOT IN"
        " (SELECT number FROM outcomes WHERE agent_id = ?1 ORDER BY number DESC LIMIT ?2)",
        (agent_id, REMEMBERED),
    )
