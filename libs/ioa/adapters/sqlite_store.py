"""An agent's memory in SQLite: one file, one connection in a thread of its own, every call one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite

from ioa.errors import InvalidInputError, UnavailableError
from ioa.group.requests import SequencedEntry
from ioa.ports.agent_store import Encounter
from ioa.ports.brain import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.messages import InformTaskResult, Message

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE groups (comm_id TEXT PRIMARY KEY, cursor INTEGER NOT NULL, met INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE entries (comm_id TEXT, seq INTEGER, data BLOB NOT NULL, PRIMARY KEY (comm_id, seq)) WITHOUT ROWID;
CREATE TABLE outbox (comm_id TEXT, key TEXT, data BLOB NOT NULL, PRIMARY KEY (comm_id, key)) WITHOUT ROWID;
CREATE TABLE tasks (
  comm_id TEXT, task_id TEXT, attempt INTEGER NOT NULL, result BLOB, PRIMARY KEY (comm_id, task_id)
) WITHOUT ROWID;
CREATE TABLE contacts (agent_id TEXT PRIMARY KEY, card BLOB NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL);
"""


class SqliteStore:
    """An agent's memory. A lock makes each method one transaction, whoever calls at the same time."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._lock = asyncio.Lock()

    async def append(self, entry: SequencedEntry) -> bool:
        """Apply an entry if it follows the cursor."""
        comm_id = entry.entry.state.comm_id
        async with self._transaction():
            if await self._cursor(comm_id) != entry.previous_seq:
                return False
            await self._run(
                "INSERT INTO groups (comm_id, cursor) VALUES (?1, ?2) ON CONFLICT (comm_id) DO UPDATE SET cursor = ?2",
                (comm_id, entry.seq),
            )
            await self._run("INSERT INTO entries VALUES (?, ?, ?)", (comm_id, entry.seq, encode(entry)))
        return True

    async def cursor(self, comm_id: CommId) -> int:
        """The last sequence applied."""
        async with self._lock:
            return await self._cursor(comm_id)

    async def entries(self, comm_id: CommId) -> Sequence[SequencedEntry]:
        """All entries of a group."""
        rows = await self._all("SELECT data FROM entries WHERE comm_id = ? ORDER BY seq", (comm_id,))
        return [decode(SequencedEntry, row[0]) for row in rows]

    async def put_outgoing(self, key: str, message: Message) -> None:
        """Keep a message until it is answered."""
        async with self._transaction():
            await self._run("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?)", (message.header.comm_id, key, encode(message)))

    async def outgoing(self, comm_id: CommId, key: str) -> Message | None:
        """The message kept under a duty's key."""
        rows = await self._all("SELECT data FROM outbox WHERE comm_id = ? AND key = ?", (comm_id, key))
        return decode(Message, rows[0][0]) if rows else None

    async def drop_outgoing(self, message: Message) -> None:
        """Forget a message that was answered."""
        comm_id, data = message.header.comm_id, encode(message)
        async with self._transaction():
            await self._run("DELETE FROM outbox WHERE comm_id = ? AND data = ?", (comm_id, data))

    async def begin_task(self, comm_id: CommId, task_id: TaskId) -> int:
        """Count an attempt."""
        async with self._transaction():
            await self._run(
                "INSERT INTO tasks VALUES (?, ?, 1, NULL) ON CONFLICT DO UPDATE SET attempt = attempt + 1", (comm_id, task_id)
            )
            rows = await self._rows("SELECT attempt FROM tasks WHERE comm_id = ? AND task_id = ?", (comm_id, task_id))
        return int(rows[0][0])

    async def finish_task(self, comm_id: CommId, result: InformTaskResult) -> None:
        """Journal a result; the first one stands."""
        async with self._transaction():
            await self._run(
                "INSERT INTO tasks VALUES (?1, ?2, 1, ?3) ON CONFLICT DO UPDATE SET result = coalesce(result, ?3)",
                (comm_id, result.task_id, encode(result)),
            )

    async def finished_task(self, comm_id: CommId, task_id: TaskId) -> InformTaskResult | None:
        """The journalled result."""
        rows = await self._all("SELECT result FROM tasks WHERE comm_id = ? AND task_id = ?", (comm_id, task_id))
        return decode(InformTaskResult, rows[0][0]) if rows and rows[0][0] is not None else None

    async def meet(self, comm_id: CommId, encounters: Sequence[Encounter]) -> None:
        """Add up how others did, once for each group."""
        async with self._transaction():
            rows = await self._rows("SELECT met FROM groups WHERE comm_id = ?", (comm_id,))
            if not rows or rows[0][0]:
                return
            await self._run("UPDATE groups SET met = 1 WHERE comm_id = ?", (comm_id,))
            for met in encounters:
                await self._run(
                    "INSERT INTO contacts VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET"
                    " card = ?2, done = done + ?3, failed = failed + ?4",
                    (met.card.agent_id, encode(met.card), met.done, met.failed),
                )

    async def contacts(self) -> Sequence[Contact]:
        """Everybody met, the most successful first."""
        rows = await self._all("SELECT card, done, failed FROM contacts ORDER BY done - failed DESC, agent_id", ())
        return [Contact(decode(AgentCard, card), done, failed) for card, done, failed in rows]

    async def forget(self, agent_id: AgentId) -> None:
        """Strike an agent from the contacts."""
        async with self._transaction():
            await self._run("DELETE FROM contacts WHERE agent_id = ?", (agent_id,))

    async def _cursor(self, comm_id: CommId) -> int:
        rows = await self._rows("SELECT cursor FROM groups WHERE comm_id = ?", (comm_id,))
        return int(rows[0][0]) if rows else 0

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        async with self._lock:
            try:
                await self._run("BEGIN IMMEDIATE", ())
                try:
                    yield
                except BaseException:
                    await self._run("ROLLBACK", ())
                    raise
                await self._run("COMMIT", ())
            except aiosqlite.Error as error:
                raise UnavailableError(
                    f"The agent's memory cannot be written: {error}.", hint="Is the disk full or the file read-only?"
                ) from error

    async def _all(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        async with self._lock:
            return await self._rows(statement, parameters)

    async def _rows(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        rows: Iterable[Any] = await self._connection.execute_fetchall(statement, parameters)
        return list(rows)

    async def _run(self, statement: str, parameters: Sequence[Any]) -> None:
        async with self._connection.execute(statement, parameters):
            return


@asynccontextmanager
async def open_sqlite_store(path: Path) -> AsyncIterator[SqliteStore]:
    """Open or make an agent's memory at `path`; what a method returned from survives the process and the power.

    Raises:
        InvalidInputError: The file is no such memory, or of a newer version.
        UnavailableError: The file cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        async with aiosqlite.connect(path, isolation_level=None) as connection:
            await _prepare(connection, path)
            yield SqliteStore(connection)
    except (aiosqlite.OperationalError, OSError) as error:
        raise UnavailableError(f"The agent's memory {path} cannot be opened: {error}.") from error


async def _prepare(connection: aiosqlite.Connection, path: Path) -> None:
    try:
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = FULL")
        row = await (await connection.execute("PRAGMA user_version")).fetchone()
    except aiosqlite.DatabaseError as error:
        raise InvalidInputError(f"{path} is not an agent's memory: {error}.", hint="Move it away to start afresh.") from error
    version = int(row[0]) if row else 0
    if version > SCHEMA_VERSION:
        raise InvalidInputError(f"{path} was written by a newer version of IoA (schema {version}).")
    if version == 0:
        await connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
