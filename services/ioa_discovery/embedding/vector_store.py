"""Vectors that outlive the process: an index that is lost, or laid out anew, is filled again without embedding anything.

An SQLite file beside the index, used by the processes that embed, which may be several: in discovery's own, waiting for the disk
would hold up the event loop. It is a convenience: one that is damaged is begun anew, and what cannot be read or written is
embedded.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

MAX_VECTORS = 500_000
"""About 800 MB of a model of 384 dimensions. The oldest go first."""
_KEY_BYTES = 16
_BUSY_SECONDS = 1.0
_SCHEMA = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, vector BLOB NOT NULL);
"""


class VectorStore:
    """The vectors of one model in a file, by their texts, as the bytes of 32-bit floats."""

    def __init__(self, file: Path, model_id: str, *, max_vectors: int = MAX_VECTORS) -> None:
        self._model_id = model_id
        self._max_vectors = max_vectors
        self._connection = _opened(file)

    def read(self, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the vectors of those texts that are here."""
        found: dict[str, bytes] = {}
        try:
            for text in texts:
                row = self._connection.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
                if row is not None:
                    found[text] = row[0]
        except sqlite3.Error as error:
            _complain("read", error)
        return found

    def write(self, vectors: Mapping[str, bytes]) -> None:
        """Keep vectors, and forget the oldest where they are too many."""
        try:
            with self._connection:
                rows = [(self._key(text), vector) for text, vector in vectors.items()]
                self._connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", rows)
                oldest = "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?"
                self._connection.execute(oldest, (self._max_vectors,))
        except sqlite3.Error as error:
            _complain("written", error)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _key(self, text: str) -> bytes:
        return vector_key(self._model_id, text)


def vector_key(model_id: str, text: str) -> bytes:
    """Return what a text's vector by this model is remembered under."""
    return hashlib.blake2b(f"{model_id}\0{text}".encode(), digest_size=_KEY_BYTES).digest()


def _opened(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connected(file)
    except sqlite3.OperationalError:
        # Another process is just opening it, or the disk is full: neither is a reason to drop it.
        return sqlite3.connect(file, timeout=_BUSY_SECONDS)
    except sqlite3.DatabaseError as error:
        _complain("read, and are begun anew", error)
        for part in ("", "-wal", "-shm"):
            file.with_name(file.name + part).unlink(missing_ok=True)
        return _connected(file)


def _connected(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS)
    try:
        connection.executescript(_SCHEMA)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _complain(what: str, error: sqlite3.Error) -> None:
    sys.stderr.write(f"Stored vectors cannot be {what}: {error}\n")
