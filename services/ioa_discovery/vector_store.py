"""File of card vectors, so that a restart of discovery computes no vector again.

An SQLite file, used by the thread that embeds. It is a cache: a damaged file is replaced by an empty one, and a vector that cannot
be read is computed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from ioa.ports.embedder import Vector

MAX_VECTORS = 500_000
"""Maximum stored vectors, about 800 MB at 384 dimensions. The oldest are deleted first."""
_KEY_BYTES = 16
_BUSY_SECONDS = 1.0
_SCHEMA = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, vector BLOB NOT NULL);
"""

_log = structlog.get_logger(__name__)


class VectorStore:
    """The vectors of a model in a file, by their texts. Use it in the thread that created it."""

    def __init__(self, file: Path, model_id: str, *, max_vectors: int = MAX_VECTORS) -> None:
        self._model_id = model_id
        self._max_vectors = max_vectors
        self._connection = _open(file)

    def read(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the stored vectors of those texts that have one."""
        found: dict[str, Vector] = {}
        try:
            for text in texts:
                row = self._connection.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
                if row is not None:
                    found[text] = array("f", row[0])
        except sqlite3.Error as error:
            _log.warning("vectors_not_read", error=str(error))
        return found

    def write(self, vectors: Mapping[str, Vector]) -> None:
        """Store vectors, and delete the oldest above the maximum."""
        try:
            with self._connection:
                rows = [(self._key(text), array("f", vector).tobytes()) for text, vector in vectors.items()]
                self._connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", rows)
                oldest = "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?"
                self._connection.execute(oldest, (self._max_vectors,))
        except sqlite3.Error as error:
            _log.warning("vectors_not_written", error=str(error))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self._model_id}\0{text}".encode(), digest_size=_KEY_BYTES).digest()


def _open(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connect(file)
    except sqlite3.OperationalError:
        # Another process opens the file at this moment, or the disk is full: neither is a reason to delete it.
        return sqlite3.connect(file, timeout=_BUSY_SECONDS)
    except sqlite3.DatabaseError as error:
        _log.warning("vectors_file_replaced", error=str(error))
        for part in ("", "-wal", "-shm"):
            file.with_name(file.name + part).unlink(missing_ok=True)
        return _connect(file)


def _connect(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    try:
        connection.executescript(_SCHEMA)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection
