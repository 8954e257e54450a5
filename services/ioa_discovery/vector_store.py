"""File of card vectors, so that a restart of discovery computes no vector again.

An SQLite file. It is a cache: a vector that cannot be read is computed.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from ioa.ports.embedder import Embedder, Vector

MAX_VECTORS = 500_000
"""Maximum stored vectors, about 800 MB at 384 dimensions. The oldest are deleted first."""
_KEY_BYTES = 16
_SCHEMA = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, vector BLOB NOT NULL);
"""

_log = structlog.get_logger(__name__)


class StoredEmbedder:
    """An `Embedder` that reads known vectors from a file and adds those that another embedder computes."""

    def __init__(self, embedder: Embedder, file: Path, *, max_vectors: int = MAX_VECTORS) -> None:
        self.model_id, self.dimension = embedder.model_id, embedder.dimension
        self._embedder = embedder
        self._max_vectors = max_vectors
        self._connection = _open(file)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector per text, in the order given."""
        found = await asyncio.to_thread(self._read, texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            computed = dict(zip(missing, await self._embedder.embed(missing), strict=True))
            await asyncio.to_thread(self._write, computed)
            found |= computed
        return [found[text] for text in texts]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _read(self, texts: Sequence[str]) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        try:
            for text in texts:
                row = self._connection.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
                if row is not None:
                    found[text] = array("f", row[0])
        except sqlite3.Error as error:
            _log.warning("vectors_not_read", error=str(error))
        return found

    def _write(self, vectors: Mapping[str, Vector]) -> None:
        try:
            with self._connection:
                rows = [(self._key(text), array("f", vector).tobytes()) for text, vector in vectors.items()]
                self._connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", rows)
                oldest = "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?"
                self._connection.execute(oldest, (self._max_vectors,))
        except sqlite3.Error as error:
            _log.warning("vectors_not_written", error=str(error))

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(f"{self.model_id}\0{text}".encode(), digest_size=_KEY_BYTES).digest()


def _open(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file, check_same_thread=False)
    try:
        connection.executescript(_SCHEMA)
    except sqlite3.Error as error:
        _log.warning("vectors_file_unusable", error=str(error), hint=f"Remove {file} if it is damaged.")
    return connection
