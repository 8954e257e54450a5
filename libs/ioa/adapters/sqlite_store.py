"""An agent's memory in SQLite: one file, and every call one transaction that runs to its end in a thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.ports.agent_store import Encounter
from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import CommId, MessageId, TaskId
from ioa.protocol.messages import InformTaskResult, Message
from ioa.protocol.outcomes import REMEMBERED, Outcome

SCHEMA_VERSION = 2

_SCHEMA = """
CREATE TABLE groups (comm_id TEXT PRIMARY KEY, cursor INTEGER NOT NULL, met INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE entries (comm_id TEXT, seq INTEGER, data BLOB NOT NULL, PRIMARY KEY (comm_id, seq)) WITHOUT ROWID;
CREATE TABLE outbox (
  comm_id TEXT, key TEXT, message_id TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (comm_id, key)
) WITHOUT ROWID;
CREATE TABLE tasks (
  comm_id TEXT, task_id TEXT, attempt INTEGER NOT NULL, result BLOB, PRIMARY KEY (comm_id, task_id)
) WITHOUT ROWID;
CREATE TABLE contacts (agent_id TEXT PRIMARY KEY, card BLOB NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL);
"""
_OUTCOMES = """
CREATE TABLE outcomes (number INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX outcomes_of_agent ON outcomes (agent_id, number);
"""
_UPGRADES = (_SCHEMA, _OUTCOMES)
"""What leads from each version of the schema to the next."""

T = TypeVar("T")


class SqliteStore:
    """An agent's memory. A thread takes each transaction from beginning to end, so that a cancelled call leaves none open.

    Calls take effect in the order in which they were made, cancelled ones included. The file is opened by the first one: an open
    file costs more memory than all else of an idle agent.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._turn = asyncio.Lock()

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply an entry if it follows the cursor."""
        state = entry.entry.state

        def write(db: sqlite3.Connection) -> bool:
            row = db.execute("SELECT cursor FROM groups WHERE comm_id = ?", (state.comm_id,)).fetchone()
            if (row[0] if row else 0) != entry.previous_seq:
                return False
            db.execute(
                "INSERT INTO groups (comm_id, cursor) VALUES (?1, ?2) ON CONFLICT (comm_id) DO UPDATE SET cursor = ?2",
                (state.comm_id, entry.seq),
            )
            db.execute("INSERT INTO entries VALUES (?, ?, ?)", (state.comm_id, entry.seq, encode(entry)))
            if state.phase.is_terminal:
                db.execute("DELETE FROM outbox WHERE comm_id = ?", (state.comm_id,))
            return True

        return await self._transaction(write)

    async def entries(self, comm_id: CommId) -> Sequence[SequencedEntry]:
        """All entries of a group."""

        def read(db: sqlite3.Connection) -> list[SequencedEntry]:
            rows = db.execute("SELECT data FROM entries WHERE comm_id = ? ORDER BY seq", (comm_id,))
            return [decode(SequencedEntry, data) for (data,) in rows]

        return await self._transaction(read)

    async def put_outgoing(self, key: str, message: Message) -> None:
        """Keep a message until it is answered."""
        header, data = message.header, encode(message)

        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?)", (header.comm_id, key, header.message_id, data))

        await self._transaction(write)

    async def outgoing(self, comm_id: CommId, key: str) -> Message | None:
        """The message kept under a duty's key."""

        def read(db: sqlite3.Connection) -> Message | None:
            row = db.execute("SELECT data FROM outbox WHERE comm_id = ? AND key = ?", (comm_id, key)).fetchone()
            return decode(Message, row[0]) if row else None

        return await self._transaction(read)

    async def drop_outgoing(self, comm_id: CommId, message_id: MessageId) -> None:
        """Forget a message that was answered."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM outbox WHERE comm_id = ? AND message_id = ?", (comm_id, message_id))

        await self._transaction(write)

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
        """The journalled result."""

        def read(db: sqlite3.Connection) -> InformTaskResult | None:
            row = db.execute("SELECT result FROM tasks WHERE comm_id = ? AND task_id = ?", (comm_id, task_id)).fetchone()
            return decode(InformTaskResult, row[0]) if row and row[0] is not None else None

        return await self._transaction(read)

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
                outcomes[agent_id].append(decode(Outcome, data))
            rows = db.execute("SELECT card, done, failed, agent_id FROM contacts ORDER BY done - failed DESC, agent_id")
            return [
                Contact(decode(AgentCard, card), done, failed, tuple(outcomes[agent_id])) for card, done, failed, agent_id in rows
            ]

        return await self._transaction(read)

    async def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` between BEGIN and COMMIT. Who cancels does not wait for it, but the next one does."""

        def run() -> T:
            if self._connection is None:
                self._connection = _open(self._path)
            with self._connection as db:
                db.execute("BEGIN IMMEDIATE")
                return work(db)

        await self._turn.acquire()
        running = asyncio.get_running_loop().run_in_executor(None, run)
        running.add_done_callback(lambda _: self._turn.release())
        try:
            return await asyncio.shield(running)
        except (sqlite3.Error, OSError) as error:
            raise UnavailableError(
                f"The agent's memory cannot be used: {error}.", hint="Is the disk full or the file read-only?"
            ) from error

    async def aclose(self) -> None:
        """Close the file when the call that is running has ended."""
        async with self._turn:
            if self._connection is not None:
                await asyncio.to_thread(self._connection.close)


@asynccontextmanager
async def open_sqlite_store(path: Path) -> AsyncIterator[SqliteStore]:
    """Open or make an agent's memory at `path`; what a method returned from survives the process and the power.

    Raises:
        InvalidInputError: The file is no such memory, or of a newer version.
        UnavailableError: The file cannot be opened.
    """
    store = SqliteStore(path)
    try:
        await asyncio.to_thread(_check, path)
    except (sqlite3.OperationalError, OSError) as error:
        raise UnavailableError(f"The agent's memory {path} cannot be opened: {error}.") from error
    try:
        yield store
    finally:
        await store.aclose()


def _check(path: Path) -> None:
    """See that a file which is there already can be used."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _open(path).close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise InvalidInputError(f"{path} is not an agent's memory: {error}.", hint="Move it away to start afresh.") from error
    if version > SCHEMA_VERSION:
        raise InvalidInputError(f"{path} was written by a newer version of IoA (schema {version}).")
    if version < SCHEMA_VERSION:
        upgrades = " ".join(_UPGRADES[version:])
        connection.executescript(f"BEGIN; {upgrades} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")


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
