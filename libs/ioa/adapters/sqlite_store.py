"""An agent's memory in one SQLite file: task journal, session, proof, contacts, thoughts and passages.

The memory contains only data that no other component has; the groups' logs are in JetStream. Each call is one transaction, which a
thread runs from beginning to end on a connection of its own: an idle agent has no open file, and a cancelled call leaves no open
transaction.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.brain_types import Contact
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode, encode
from ioa.protocol.ids import CommId, SessionId, TaskId
from ioa.protocol.messages import InformTaskResult

FORMAT = 3
"""Number of the file's format, stored as SQLite's `user_version`."""

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (
  comm_id TEXT, launched REAL, task_id TEXT, attempt INTEGER NOT NULL, result BLOB, PRIMARY KEY (comm_id, launched, task_id)
) WITHOUT ROWID;
CREATE TABLE contacts (agent_id TEXT PRIMARY KEY, card BLOB NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL);
CREATE TABLE thoughts (comm_id TEXT, turn INTEGER, thought TEXT NOT NULL, PRIMARY KEY (comm_id, turn)) WITHOUT ROWID;
CREATE TABLE passages (
  number INTEGER PRIMARY KEY, comm_id TEXT NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL,
  UNIQUE (comm_id, name)
);
CREATE VIRTUAL TABLE words USING fts5 (text, content = 'passages', content_rowid = 'number');
CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
  INSERT INTO words (rowid, text) VALUES (new.number, new.text);
END;
CREATE TRIGGER passage_deleted AFTER DELETE ON passages BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.number, old.text);
END
"""
_SESSION, _PROOF = "session", "proof"
_ANSWERS_WITHIN = timedelta(seconds=10)
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="memory")
"""Threads of all stores of the process, apart from the event loop's default threads, which other work can occupy."""

_MAX_QUERY_WORDS = 64

T = TypeVar("T")


@dataclass(frozen=True)
class Passage:
    """A message or result that an agent was shown, with its speaker; `name` is unique within the group."""

    comm_id: CommId
    name: str
    text: str


class SqliteStore:
    """An agent's memory. Calls take effect in their order, cancelled ones included.

    A group is identified by `comm_id` and by `launched`, its launch time in the log: after a loss of the logs a group of the same
    goal has the same `comm_id`.

    Args:
        path: The file; created by the first call.
        answers_within: How long calls may fail or hang before the memory counts as unwell.
    """

    def __init__(self, path: Path, *, answers_within: timedelta = _ANSWERS_WITHIN) -> None:
        self._path = path
        self._answers_within = answers_within.total_seconds()
        self._turn = asyncio.Lock()
        self._unanswered_since: float | None = None

    @property
    def is_well(self) -> bool:
        """True unless calls have failed or hung for `answers_within`."""
        since = self._unanswered_since
        return since is None or time.monotonic() - since < self._answers_within

    async def last_session(self) -> SessionId | None:
        """Return the session that was noted last."""
        rows = await self._execute("SELECT value FROM facts WHERE name = ?", _SESSION)
        return SessionId(rows[0][0]) if rows else None

    async def note_session(self, session: SessionId) -> None:
        """Store the session of this process."""
        await self._execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", _SESSION, session)

    async def keep_proof(self, drawn: str) -> str:
        """Return the stored proof; store `drawn` if there is none."""
        keep = "INSERT INTO facts VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value RETURNING value"
        return str((await self._execute(keep, _PROOF, drawn))[0][0])

    async def begin_task(self, comm_id: CommId, launched: datetime, task_id: TaskId) -> int:
        """Count an attempt at a task, and return its number, from 1."""
        count = "INSERT INTO tasks VALUES (?, ?, ?, 1, NULL) ON CONFLICT DO UPDATE SET attempt = attempt + 1 RETURNING attempt"
        return int((await self._execute(count, comm_id, launched.timestamp(), task_id))[0][0])

    async def finish_task(self, comm_id: CommId, launched: datetime, result: InformTaskResult) -> None:
        """Journal a task's result, unless it has one."""
        write = "INSERT INTO tasks VALUES (?1, ?2, ?3, 1, ?4) ON CONFLICT DO UPDATE SET result = coalesce(result, ?4)"
        await self._execute(write, comm_id, launched.timestamp(), result.task_id, encode(result))

    async def finished_task(self, comm_id: CommId, launched: datetime, task_id: TaskId) -> InformTaskResult | None:
        """Return the journalled result of a task."""
        find = "SELECT result FROM tasks WHERE comm_id = ? AND launched = ? AND task_id = ? AND result IS NOT NULL"
        rows = await self._execute(find, comm_id, launched.timestamp(), task_id)
        return decode(InformTaskResult, rows[0][0]) if rows else None

    async def open_groups(self) -> Collection[CommId]:
        """Return the groups in which the agent has begun tasks, and that it has not left."""
        return {CommId(comm_id) for (comm_id,) in await self._execute("SELECT DISTINCT comm_id FROM tasks")}

    async def forget_group(self, comm_id: CommId, *, before: datetime) -> None:
        """Delete the data of a group that has ended, and all passages older than an instant."""

        def write(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM tasks WHERE comm_id = ?", (comm_id,))
            db.execute("DELETE FROM thoughts WHERE comm_id = ?", (comm_id,))
            db.execute("DELETE FROM passages WHERE at < ?", (before.timestamp(),))

        await self._run(write)

    async def put_thought(self, comm_id: CommId, turn: int, thought: str) -> None:
        """Store the agent's thought of a turn; lone surrogates become question marks."""
        await self._execute("INSERT OR REPLACE INTO thoughts VALUES (?, ?, ?)", comm_id, turn, _storable(thought))

    async def thoughts(self, comm_id: CommId) -> Mapping[int, str]:
        """Return the agent's thoughts in a group, by turn."""
        return dict(await self._execute("SELECT turn, thought FROM thoughts WHERE comm_id = ?", comm_id))

    async def remember(self, user: str, passages: Sequence[Passage], at: datetime) -> None:
        """Store passages of groups of a user; a passage that is stored already is ignored."""
        rows = [(one.comm_id, one.name, user, at.timestamp(), _storable(one.text)) for one in passages]
        add = "INSERT OR IGNORE INTO passages (comm_id, name, user, at, text) VALUES (?, ?, ?, ?, ?)"
        await self._run(lambda db: db.executemany(add, rows))

    async def keep_only(self, comm_id: CommId, there: Collection[str]) -> None:
        """Delete a group's passages whose names are not in `there`."""
        struck = "DELETE FROM passages WHERE comm_id = ? AND name NOT IN (SELECT value FROM json_each(?))"
        await self._execute(struck, comm_id, json.dumps([*there]))

    async def recall(self, user: str, words: str, most: int, shown: Collection[tuple[CommId, str]]) -> Sequence[Passage]:
        """Return a user's passages that contain one of the words, best first by BM25, without the `shown` ones."""
        distinct = dict.fromkeys(re.findall(r"\w+", words.casefold()))
        query = " OR ".join(f'"{word}"' for word in [*distinct][:_MAX_QUERY_WORDS])
        if not query:
            return ()
        found = (
            "SELECT comm_id, name, passages.text FROM words JOIN passages ON number = words.rowid"
            " WHERE words MATCH ? AND user = ? ORDER BY rank, number DESC LIMIT ?"
        )
        rows = await self._execute(found, query, user, most + len(shown))
        return [Passage(*row) for row in rows if (row[0], row[1]) not in shown][:most]

    async def meet(self, met: Sequence[Contact]) -> None:
        """Add the tasks that other agents did in a group."""
        rows = [(one.card.agent_id, encode(one.card), one.tasks_done, one.tasks_failed) for one in met]
        add = (
            "INSERT INTO contacts VALUES (?1, ?2, ?3, ?4)"
            " ON CONFLICT DO UPDATE SET card = ?2, done = done + ?3, failed = failed + ?4"
        )
        await self._run(lambda db: db.executemany(add, rows))

    async def contacts(self) -> Sequence[Contact]:
        """Return the agents that this agent gave tasks to, the most successful first."""
        rows = await self._execute("SELECT card, done, failed FROM contacts ORDER BY done - failed DESC, agent_id")
        return [Contact(decode(AgentCard, card), done, failed) for card, done, failed in rows]

    async def aclose(self) -> None:
        """Wait until the running call has ended."""
        async with self._turn:
            pass

    async def _execute(self, statement: str, *parameters: object) -> list[Any]:
        """Run one statement as a transaction, and return its rows."""
        return await self._run(lambda db: db.execute(statement, parameters).fetchall())

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run one transaction. A cancelled caller does not wait for its end; the next call does.

        Raises:
            InvalidInputError: The file has another format.
            UnavailableError: The file cannot be used.
        """
        await self._turn.acquire()
        running = asyncio.get_running_loop().run_in_executor(_THREADS, self._transact, work)
        running.add_done_callback(self._settle)
        try:
            return await asyncio.shield(running)
        except (sqlite3.Error, OSError) as error:
            raise UnavailableError(
                f"The agent's memory cannot be used: {error}.",
                hint=f"Is the disk full, or {self._path} read-only? If it is damaged, move it away: the agent creates a new one.",
            ) from error

    def _settle(self, ran: asyncio.Future[T]) -> None:
        if not ran.cancelled():
            ran.exception()  # a cancelled caller does not retrieve it
        self._turn.release()

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._unanswered_since is None:
            self._unanswered_since = time.monotonic()
        with closing(_open(self._path)) as connection, connection as db:
            db.execute("BEGIN IMMEDIATE")
            answer = work(db)
        self._unanswered_since = None
        return answer


@asynccontextmanager
async def open_sqlite_store(path: Path) -> AsyncIterator[SqliteStore]:
    """Open an agent's memory.

    Raises:
        InvalidInputError: The file has another format.
        UnavailableError: The file cannot be opened, or is damaged.
    """
    store = SqliteStore(path)
    await store.last_session()
    try:
        yield store
    finally:
        await store.aclose()


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = TRUNCATE")  # a write costs half of the time of the default mode
        [found] = connection.execute("PRAGMA user_version").fetchone()
        if found not in (0, FORMAT):
            raise InvalidInputError(
                f"{path} has format {found}; expected {FORMAT}.", hint="Move the file away: the agent creates a new one."
            )
        if not found:
            connection.execute("PRAGMA auto_vacuum = FULL")  # has an effect only before the first table
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}; PRAGMA user_version = {FORMAT}; COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _storable(text: str) -> str:
    """Replace lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode()
