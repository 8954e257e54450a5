"""Vectors that outlive the process: an index that is lost, or laid out anew, is filled again without embedding anything.

An SQLite file beside the index. It is a convenience: one that is damaged is begun anew, and what cannot be read or written is
embedded.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog

from ioa.ports.embedder import Embedder, Vector
from ioa_discovery.embedding import vector_key
from ioa_discovery.shard_requests import components, packed_vector

MAX_VECTORS = 500_000
"""About 800 MB of a model of 384 dimensions. The oldest go first."""
_KEYS = 500
_SCHEMA = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS vectors (number INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB UNIQUE, vector BLOB NOT NULL);
"""

T = TypeVar("T")
_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_stored_embedder(embedder: Embedder, file: Path, *, max_vectors: int = MAX_VECTORS) -> AsyncIterator[StoredEmbedder]:
    """Open the file and keep what `embedder` embeds in it until the block ends."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="vectors")
    try:
        connection = await asyncio.get_running_loop().run_in_executor(thread, _opened, file)
        stored = StoredEmbedder(embedder, connection, thread, max_vectors)
        try:
            yield stored
        finally:
            await asyncio.get_running_loop().run_in_executor(thread, connection.close)
    finally:
        await asyncio.to_thread(thread.shutdown)


class StoredEmbedder:
    """An `Embedder` that looks into the file before it embeds. Made by `open_stored_embedder`."""

    def __init__(self, embedder: Embedder, connection: sqlite3.Connection, thread: ThreadPoolExecutor, max_vectors: int) -> None:
        self._embedder = embedder
        self._connection = connection
        self._thread = thread
        self._max_vectors = max_vectors

    @property
    def model_id(self) -> str:
        """Name the model and its weights."""
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        """Give the length of every vector."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector per text, in the order given."""
        keys = [vector_key(self.model_id, text) for text in texts]
        nothing: dict[bytes, Vector] = {}
        found = await self._in_thread(partial(self._read, list(dict.fromkeys(keys))), nothing)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            embedded = dict(zip(missing, await self._embedder.embed(list(missing.values())), strict=True))
            found.update(embedded)
            await self._in_thread(partial(self._write, embedded), None)
        return [found[key] for key in keys]

    async def aclose(self) -> None:
        """Do nothing: the file is closed when the block of `open_stored_embedder` is left."""

    async def _in_thread(self, function: Callable[[], T], otherwise: T) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except sqlite3.Error as error:
            _log.warning("vectors_not_stored", error=str(error))
            return otherwise

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        found: dict[bytes, Vector] = {}
        for start in range(0, len(keys), _KEYS):
            asked = keys[start : start + _KEYS]
            marks = ",".join("?" * len(asked))
            rows = self._connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", asked)  # noqa: S608
            found.update((key, components(vector)) for key, vector in rows)
        return found

    def _write(self, vectors: Mapping[bytes, Vector]) -> None:
        with self._connection:
            rows = [(key, packed_vector(vector)) for key, vector in vectors.items()]
            self._connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", rows)
            oldest = "DELETE FROM vectors WHERE number <= (SELECT max(number) FROM vectors) - ?"
            self._connection.execute(oldest, (self._max_vectors,))


def _opened(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connected(file)
    except sqlite3.DatabaseError as error:
        _log.warning("vectors_dropped", file=str(file), error=str(error))
        for part in ("", "-wal", "-shm"):
            file.with_name(file.name + part).unlink(missing_ok=True)
        return _connected(file)


def _connected(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file)
    try:
        connection.executescript(_SCHEMA)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection
