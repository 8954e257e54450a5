"""File of an agent's memory: its schema, the encoding of entries, and the handling of damage.

Each log entry carries its group's whole state, most of which the entry before it carried too: what is written together is kept as
what differs. A file that is damaged is put aside, and a fresh one begun: the groups' logs are the record, and the agent reads them
again.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgpack
import structlog

from ioa.errors import InvalidInputError
from ioa.protocol.codec import decode
from ioa.protocol.ids import CommId
from ioa.protocol.model import Model

T = TypeVar("T")
M = TypeVar("M", bound=Model)

_log = structlog.get_logger(__name__)

FORMAT = 1
"""Number of the file's format, stored as SQLite's `user_version`."""

_SCHEMA = """
CREATE TABLE groups (
  comm_id TEXT PRIMARY KEY, cursor INTEGER NOT NULL, met INTEGER NOT NULL DEFAULT 0, ended_at REAL, newest BLOB
) WITHOUT ROWID;
CREATE TABLE entries (comm_id TEXT, seq INTEGER, data BLOB NOT NULL, PRIMARY KEY (comm_id, seq)) WITHOUT ROWID;
CREATE TABLE outbox (
  comm_id TEXT, key TEXT, message_id TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (comm_id, key)
) WITHOUT ROWID;
CREATE TABLE tasks (
  comm_id TEXT, task_id TEXT, attempt INTEGER NOT NULL, result BLOB, PRIMARY KEY (comm_id, task_id)
) WITHOUT ROWID;
CREATE TABLE contacts (agent_id TEXT PRIMARY KEY, card BLOB NOT NULL, done INTEGER NOT NULL, failed INTEGER NOT NULL);
CREATE TABLE outcomes (number INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX outcomes_of_agent ON outcomes (agent_id, number);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE observations (comm_id TEXT PRIMARY KEY, turn INTEGER NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE thoughts (comm_id TEXT, turn INTEGER, thought TEXT NOT NULL, PRIMARY KEY (comm_id, turn)) WITHOUT ROWID;
CREATE TABLE summaries (comm_id TEXT PRIMARY KEY, covers TEXT NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE passages USING fts5 (comm_id UNINDEXED, name UNINDEXED, user UNINDEXED, text);
CREATE TABLE told (
  comm_id TEXT, name TEXT, passage INTEGER NOT NULL, size_bytes INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (comm_id, name)
) WITHOUT ROWID
"""
"""A row of `entries` contains all entries that were written together, packed with the previous row; `seq` is the last one's.
`groups.newest` is the last row of an open group. `told` names the passages of a group and their sizes."""

SYNCED, NOT_SYNCED = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"
"""In WAL mode a transaction that is not synced survives its process at once, and a power cut with the next one that is synced."""

WINDOW_BYTES = 32 * 1024
"""How far back zlib looks for what it has seen before."""
_QUICKLY = 1
_CHECKED_WITHIN = timedelta(seconds=2)
READ_WITHIN = timedelta(seconds=2)
"""How long is read beside what is written; whoever asked is told no more then."""
_STEPS_BETWEEN_LOOKS = 10_000
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE = 0xFF


class DamagedFileError(Exception):
    """The file holds something that was not written here."""


def read_record(db: sqlite3.Connection) -> Iterator[tuple[CommId, bytes]]:
    """Read all encoded entries of a memory's file, group by group, in order."""
    for (comm_id,) in db.execute("SELECT DISTINCT comm_id FROM entries ORDER BY comm_id").fetchall():
        for _, row in unpacked_rows(db, comm_id):
            for data in entries_in(comm_id, row):
                yield CommId(comm_id), data


def packed(data: bytes, before: bytes) -> bytes:
    """Pack a row of encoded entries as what differs from the row before it."""
    packer = zlib.compressobj(_QUICKLY, zdict=before[-WINDOW_BYTES:])
    return packer.compress(data) + packer.flush()


def unpacked_rows(db: sqlite3.Connection, comm_id: CommId, after: int = 0, row: bytes = b"") -> Iterator[tuple[int, bytes]]:
    """Unpack the rows of a group behind one, whose sequence and end are given, each with its sequence."""
    for seq, data in db.execute("SELECT seq, data FROM entries WHERE comm_id = ? AND seq > ? ORDER BY seq", (comm_id, after)):
        try:
            row = zlib.decompressobj(zdict=row[-WINDOW_BYTES:]).decompress(data)
        except zlib.error as error:
            raise DamagedFileError(f"an entry of {comm_id} cannot be unpacked: {error}") from error
        yield seq, row


def entries_in(comm_id: CommId, row: bytes) -> Iterator[bytes]:
    """Return the encoded entries that a row holds."""
    unpacker, start = msgpack.Unpacker(), 0
    try:
        unpacker.feed(row)
        while start < len(row):
            unpacker.skip()
            yield row[start : unpacker.tell()]
            start = unpacker.tell()
    except (ValueError, msgpack.UnpackException) as error:
        raise DamagedFileError(f"an entry of {comm_id} cannot be unpacked: {error}") from error


def decoded(kind: type[M], data: bytes) -> M:
    """Read something that was kept as it travels; what cannot be read is damage."""
    try:
        return decode(kind, data)
    except InvalidInputError as error:
        raise DamagedFileError(f"{kind.__name__} cannot be read: {error.message}") from error


def is_damage(error: Exception) -> bool:
    """Whether the file is to blame, rather than the disk or another process."""
    if isinstance(error, sqlite3.DatabaseError):
        return getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _DAMAGED
    return isinstance(error, DamagedFileError)


def put_aside(path: Path, why: Exception) -> None:
    """Move a damaged file, and what belongs to it, to a name that is free."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm", ""):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    _log.error("memory_damaged", path=str(path), put_aside=str(aside), error=str(why))


def check_file(path: Path) -> None:
    """See that a file which is there already can be used, and put it aside if it is damaged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return
    try:
        connection = open_file(path)
        try:
            _look_for_damage(connection)
        finally:
            connection.close()
    except (DamagedFileError, sqlite3.DatabaseError) as error:
        if not is_damage(error):
            raise
        put_aside(path, error)


def _look_for_damage(connection: sqlite3.Connection) -> None:
    """Have SQLite check the file, as far as it comes in the time it is given."""
    until = time.monotonic() + _CHECKED_WITHIN.total_seconds()
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
    try:
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return
    if found != "ok":
        raise DamagedFileError(found)


def read_from(path: Path, read: Callable[[sqlite3.Connection], T], within: timedelta) -> T:
    """Read a file that another connection may write meanwhile, for no longer than a while."""
    until = time.monotonic() + within.total_seconds()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS_BETWEEN_LOOKS)
        return read(connection)


def open_file(path: Path) -> sqlite3.Connection:
    """Open a file to write to it, or create it.

    Raises:
        InvalidInputError: It has another format.
    """
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of use only before there is any table
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(SYNCED)
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found not in (0, FORMAT):
        raise InvalidInputError(
            f"{path} has format {found}; expected {FORMAT}.", hint="Move the file away: the agent creates a new one."
        )
    if found == 0:
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}; PRAGMA user_version = {FORMAT}; COMMIT")
