"""The index inside the service's process: Qdrant's engine as a library, so that a laptop needs no vector database.

Every call into the engine goes through one thread, which keeps it off the event loop and the engine's writes in order. The
engine holds the GIL while it works, so nothing long may be asked of it here: `optimize()` is never called, searches are
exact, and that is fast up to some ten thousand agents; beyond that, use a Qdrant server.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from ioa.errors import ConflictError, MissingExtraError
from ioa.ports.agent_index import SCHEMA_VERSION, Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Signal, SparseVector
from ioa.protocol.ids import AgentId
from ioa_discovery import points

try:
    import qdrant_edge as edge
except ImportError as error:
    raise MissingExtraError.of("The in-process index", "discovery") from error

T = TypeVar("T")
_PAGE_POINTS = 1_000


@asynccontextmanager
async def open_edge_index(*, model_id: str, dimension: int, folder: Path | None = None) -> AsyncIterator[EdgeIndex]:
    """Open the store in `folder`, or one that is gone on leaving if no folder is given.

    A store of another model or schema, or one that cannot be read, is replaced by an empty one: the index is derived and is
    filled again from the registry.

    Raises:
        ConflictError: Another process has the folder open.
    """
    async with AsyncExitStack() as stack:
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="edge-index")
        stack.push_async_callback(asyncio.to_thread, thread.shutdown, wait=True)
        loop = asyncio.get_running_loop()
        if folder is None:
            folder = Path(await loop.run_in_executor(thread, partial(tempfile.mkdtemp, prefix="ioa-index-")))
            stack.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)
        lock = await loop.run_in_executor(thread, _lock, folder)
        stack.callback(lock.close)
        shard = await loop.run_in_executor(thread, _open_shard, folder, model_id, dimension)
        index = EdgeIndex(shard, thread)
        stack.push_async_callback(index.aclose)
        yield index


class EdgeIndex:
    """An `AgentIndex` over an open shard and the one thread that may touch it. Made by `open_edge_index`."""

    def __init__(self, shard: edge.EdgeShard, thread: ThreadPoolExecutor) -> None:
        self._shard = shard
        self._thread = thread
        self._closed = False

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries."""
        if entries:
            await self._call(lambda: self._shard.update(edge.UpdateOperation.upsert_points([_point(entry) for entry in entries])))

    async def set_online(self, agent_id: AgentId, online: bool) -> None:
        """Record whether an agent is alive."""
        await self._call(lambda: self._set_online(agent_id, online))

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Forget agents."""
        if agent_ids:
            ids: list[edge.PointId] = [points.point_id(agent_id) for agent_id in agent_ids]
            await self._call(lambda: self._shard.update(edge.UpdateOperation.delete_points(ids)))

    async def search(self, queries: Sequence[IndexQuery]) -> Sequence[Candidates]:
        """Ask for all signals of all queries in one planned batch."""
        asked = [(number, signal, request) for number, query in enumerate(queries) for signal, request in _requests(query)]
        batch = edge.QueryBatchRequest([request for _, _, request in asked])
        answers = await self._call(lambda: self._shard.query_batch(batch)) if asked else []
        found: list[dict[Signal, list[Candidate]]] = [{signal: [] for signal in Signal} for _ in queries]
        for (number, signal, _), answer in zip(asked, answers, strict=True):
            found[number][signal] = [points.candidate(point.payload, point.score) for point in answer]
        return found

    async def fetch(self, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, IndexEntry]:
        """Return the entries of those agents that are here."""
        ids: list[edge.PointId] = [points.point_id(agent_id) for agent_id in agent_ids]
        records = await self._call(lambda: self._shard.retrieve(ids, with_payload=True, with_vector=["text", "examples"]))
        entries = [points.entry(record.payload, record.vector) for record in records]
        return {entry.card.agent_id: entry for entry in entries}

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent, read page by page."""
        states: dict[AgentId, Indexed] = {}
        offset: edge.PointId | None = None
        while True:
            request = edge.ScrollRequest(offset=offset, limit=_PAGE_POINTS, with_payload=list(points.STATE_FIELDS))
            records, offset = await self._call(self._shard.scroll, request)
            states.update(points.state(record.payload) for record in records)
            if offset is None:
                return states

    async def count(self) -> int:
        """Return how many agents are here."""
        return await self._call(lambda: self._shard.count(edge.CountRequest(exact=True)))

    async def aclose(self) -> None:
        """Flush to disk and close the shard. Idempotent."""
        if not self._closed:
            self._closed = True
            await self._call(self._shard.flush)
            await self._call(self._shard.close)

    async def _call(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _set_online(self, agent_id: AgentId, online: bool) -> None:
        # The engine would accept a payload for a point that does not exist and keep it, a card without a card.
        ids: list[edge.PointId] = [points.point_id(agent_id)]
        if self._shard.retrieve(ids, with_payload=False, with_vector=False):
            self._shard.update(edge.UpdateOperation.set_payload(ids, {points.ONLINE_FIELD: int(online)}))


def _requests(query: IndexQuery) -> list[tuple[Signal, edge.QueryRequest]]:
    dense = list(query.dense)
    asked: list[tuple[Signal, edge.Query]] = [
        (Signal.TEXT, edge.Query.Nearest(dense, using=Signal.TEXT.value)),
        (Signal.EXAMPLES, edge.Query.Nearest([dense], using=Signal.EXAMPLES.value)),
    ]
    if query.terms.indices:
        asked.append((Signal.BM25, edge.Query.Nearest(_sparse(query.terms), using=Signal.BM25.value)))
    allowed = _filter(query)
    return [
        (
            signal,
            edge.QueryRequest(
                limit=query.limit,
                query=nearest,
                filter=allowed,
                with_payload=list(points.CANDIDATE_FIELDS),
                params=edge.SearchParams(exact=True),
            ),
        )
        for signal, nearest in asked
    ]


def _filter(query: IndexQuery) -> edge.Filter:
    must: list[edge.ConditionType] = [
        edge.FieldCondition(key, match=edge.MatchValue(value)) for key, value in points.must_match(query.filters)
    ]
    excluded: list[edge.ConditionType] = [edge.FieldCondition("agent_id", match=edge.MatchAny(list(map(str, query.exclude))))]
    return edge.Filter(must=must, must_not=excluded if query.exclude else None)


def _point(entry: IndexEntry) -> edge.Point:
    named: dict[str, edge.NamedVector] = dict(points.vectors(entry))
    if entry.terms.indices:
        named[Signal.BM25.value] = _sparse(entry.terms)
    return edge.Point(points.point_id(entry.card.agent_id), named, points.payload(entry))


def _sparse(terms: SparseVector) -> edge.SparseVector:
    return edge.SparseVector(list(terms.indices), list(terms.values))


def _lock(home: Path) -> IO[str]:
    """Take the folder for this process until the file is closed, or the process ends however it may.

    The engine would answer a second process with the same error as a damaged store, which is replaced.
    """
    home.mkdir(parents=True, exist_ok=True)
    lock = (home / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise ConflictError(
            f"Another process uses the index in {home}.", hint="Give each replica of discovery a folder of its own."
        ) from None
    return lock


def _open_shard(home: Path, model_id: str, dimension: int) -> edge.EdgeShard:
    """Load the shard if it is of this model and schema and can be read; else begin an empty one."""
    stamp = home / "index.json"
    shard_folder = home / "shard"
    wanted = {"schema": SCHEMA_VERSION, "model_id": model_id, "dimension": dimension}
    if _read_stamp(stamp) == wanted:
        # The engine raises its own kind for every kind of damage, and each means the same: rebuild.
        with suppress(Exception):
            return edge.EdgeShard.load(str(shard_folder))
    # The stamp goes first and comes last: a crash in between leaves a store that is rebuilt again, never one that is trusted.
    stamp.unlink(missing_ok=True)
    shutil.rmtree(shard_folder, ignore_errors=True)
    shard_folder.mkdir(parents=True)
    shard = edge.EdgeShard.create(str(shard_folder), _config(dimension))
    for field in points.KEYWORD_FIELDS:
        shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword))
    shard.update(edge.UpdateOperation.create_field_index(points.ONLINE_FIELD, edge.PayloadSchemaType.Integer))
    shard.flush()
    stamp.write_text(json.dumps(wanted))
    return shard


def _read_stamp(stamp: Path) -> object:
    try:
        return json.loads(stamp.read_text())
    except (OSError, ValueError):
        return None


def _config(dimension: int) -> edge.EdgeConfig:
    nearest_member = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
    return edge.EdgeConfig(
        vectors={
            "text": edge.EdgeVectorParams(dimension, edge.Distance.Cosine),
            "examples": edge.EdgeVectorParams(dimension, edge.Distance.Cosine, multivector_config=nearest_member),
        },
        sparse_vectors={"bm25": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
    )
