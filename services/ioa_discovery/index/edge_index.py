"""The index in a process of discovery's own: Qdrant's engine as a library, so that a laptop needs no vector database.

The engine holds the GIL in every call, hence it runs in another process, and the event loop only waits. What was written is
there after a crash of either process. Below some ten thousand agents searches are exact; when the index has grown beyond, a
search tree is built beside it.
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

from ioa.errors import ConflictError, MissingExtraError
from ioa.ports.agent_index import SCHEMA_VERSION, Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Likeness, Signal
from ioa.ports.embedder import Vector
from ioa.protocol.ids import AgentId
from ioa_discovery.index import points
from ioa_discovery.index.live_shard import EDGE_PROCESS, GROW_BY_POINTS, LiveShard, open_live_shard
from ioa_discovery.index.shard_requests import (
    CompareAgents,
    CountAgents,
    DeleteAgents,
    Found,
    Nearness,
    OpenShard,
    PointQuery,
    PutAgents,
    Row,
    ScrollAgents,
    SearchAgents,
    SetPayload,
    Terms,
)
from ioa_discovery.vectors import packed_vector
from ioa_discovery.workers.worker_pipe import WorkerFailedError, open_process

_candidate: Callable[[Row], Candidate] = partial(tuple.__new__, Candidate)
"""What `Candidate._make` does, without its two calls: a search makes hundreds, while the event loop waits."""
_PAGE_AGENTS = 1_000
_WRITE_AGENTS = 16
"""Agents of one write: a search waits for one write at most."""
_FAILURES = 3
_LOCK_TRIES = 40
_LOCK_SECONDS = 0.05


def _nobody() -> None:
    """Take no notice."""


@asynccontextmanager
async def open_edge_index(
    *,
    model_id: str,
    dimension: int,
    folder: Path | None = None,
    restarted: Callable[[], None] = _nobody,
    grow_by: int = GROW_BY_POINTS,
) -> AsyncIterator[EdgeIndex]:
    """Open the store in `folder`, or one that is gone on leaving if no folder is given.

    A store of another model or schema, or one that cannot be read, is replaced by an empty one: the index is derived and is
    filled again from the registry.

    Args:
        model_id: The embedder's model.
        dimension: Its vectors' length.
        folder: Where the store is.
        restarted: Is called when the engine's process had died and runs again. It holds what it held, unless that was damaged.
        grow_by: So many points outside the search tree make a new one.

    Raises:
        ConflictError: Another process has the folder open.
        IoaError: The engine gives wrong answers.
        MissingExtraError: The engine is not installed.
    """
    async with (
        prepare_edge_index(folder) as prepared,
        prepared.open(model_id=model_id, dimension=dimension, restarted=restarted, grow_by=grow_by) as index,
    ):
        yield index


@asynccontextmanager
async def prepare_edge_index(folder: Path | None = None) -> AsyncIterator[PreparedIndex]:
    """Take the folder and start the process, which can check the engine while the model is being loaded.

    Raises:
        ConflictError: Another process has the folder open.
        MissingExtraError: The engine is not installed.
    """
    if find_spec("qdrant_edge") is None:
        raise MissingExtraError.of("The in-process index", "discovery")
    async with AsyncExitStack() as stack:
        if folder is None:
            folder = Path(await asyncio.to_thread(partial(tempfile.mkdtemp, prefix="ioa-index-")))
            stack.push_async_callback(asyncio.to_thread, shutil.rmtree, folder, ignore_errors=True)
        lock = await _lock(folder)
        stack.callback(lock.close)
        process = await stack.enter_async_context(open_process(EDGE_PROCESS, inherited=[lock.fileno()]))
        yield PreparedIndex(folder, lock, process)


class PreparedIndex:
    """A folder that is ours, and a process that waits to be told what to open in it. Made by `prepare_edge_index`."""

    def __init__(self, folder: Path, lock: IO[str], process: Process) -> None:
        self._folder = folder
        self._lock = lock
        self._process = process

    @asynccontextmanager
    async def open(
        self, *, model_id: str, dimension: int, restarted: Callable[[], None] = _nobody, grow_by: int = GROW_BY_POINTS
    ) -> AsyncIterator[EdgeIndex]:
        """Open the store, once. See `open_edge_index`."""
        opening = OpenShard(
            folder=str(self._folder),
            kind={"schema": SCHEMA_VERSION, "layout": points.LAYOUT, "model_id": model_id},
            dimension=dimension,
            fields=points.CANDIDATE_FIELDS,
            keywords=points.KEYWORD_FIELDS,
            flag=points.ONLINE_FIELD,
        )
        inherited = [self._lock.fileno()]
        async with open_live_shard(
            opening, inherited=inherited, process=self._process, restarted=restarted, grow_by=grow_by
        ) as shard:
            yield EdgeIndex(shard)


class EdgeIndex:
    """An `AgentIndex` over a shard in another process. Made by `open_edge_index`, which ends that process."""

    def __init__(self, shard: LiveShard) -> None:
        self._shard = shard
        self._failures = 0
        self.last_query: IndexQuery | None = None

    @property
    def pid(self) -> int | None:
        """The process that answers now; None while it is being started again."""
        return self._shard.pid

    @property
    def built_points(self) -> int:
        """How many points the search tree was built over, or had left at the last start; 0 without one."""
        return self._shard.built_points

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries."""
        for start in range(0, len(entries), _WRITE_AGENTS):
            batch = entries[start : start + _WRITE_AGENTS]
            agent_ids = [entry.card.agent_id for entry in batch]
            records = [record for entry in batch for record in points.records(entry)]
            await self._shard.write(PutAgents(agent_ids, records), agent_ids)

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are alive."""
        for start in range(0, len(agent_ids), _WRITE_AGENTS):
            batch = agent_ids[start : start + _WRITE_AGENTS]
            await self._shard.write(SetPayload(batch, {points.ONLINE_FIELD: int(online)}), batch)

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Forget agents."""
        for start in range(0, len(agent_ids), _WRITE_AGENTS):
            batch = agent_ids[start : start + _WRITE_AGENTS]
            await self._shard.write(DeleteAgents(batch), batch)

    async def search(self, queries: Sequence[IndexQuery], *, exact: bool = False) -> Sequence[Candidates]:
        """Answer one query after the other, so that others come in between; `exact` never goes through the search tree."""
        return [await self._search(query, exact=exact) for query in queries]

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return how near a need those of the agents are that are here."""
        if not agent_ids:
            return {}
        near = await self._shard.read(CompareAgents(packed_vector(need), agent_ids))
        return {AgentId(name): points.likeness(one) for name, one in cast(Mapping[str, Nearness], near).items()}

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent, read page by page."""
        states: dict[AgentId, Indexed] = {}
        offset: int | None = None
        while True:
            page = await self._shard.read(ScrollAgents(points.STATE_FIELDS, offset, _PAGE_AGENTS))
            payloads, offset = cast(tuple[list[Mapping[str, Any]], int | None], page)
            states.update(points.state(payload) for payload in payloads)
            if offset is None:
                return states

    async def count(self) -> int:
        """Return how many agents are here."""
        return cast(int, await self._shard.read(CountAgents()))

    async def aclose(self) -> None:
        """Do nothing: the process is ended, and brings everything to disk, when the block of `open_edge_index` is left."""

    async def _search(self, query: IndexQuery, *, exact: bool) -> Candidates:
        request = SearchAgents(
            PointQuery(
                dense=packed_vector(query.dense) if query.dense is not None else None,
                terms=Terms(query.terms.indices, query.terms.values) if query.terms.indices else None,
                must=points.must_match(query.filters),
                exclude=query.exclude,
                limit=query.limit,
                without={signal.value: pools for signal, pools in query.without.items() if pools},
            ),
            exact,
        )
        try:
            found = cast(Found, await self._shard.read(request))
        except WorkerFailedError:
            await self._count_failure()
            raise
        self._failures = 0
        self.last_query = query if query.dense is not None else self.last_query
        return {signal: list(map(_candidate, found.get(signal.value, ()))) for signal in Signal}

    async def _count_failure(self) -> None:
        """Give a store up that fails again and again: what it holds is derived."""
        self._failures += 1
        if self._failures == _FAILURES:
            self._failures = 0
            await self._shard.discard()


async def _lock(folder: Path) -> IO[str]:
    """Take the folder for this process and those that it starts.

    The engine would answer a second process with the same error as a damaged store, which is replaced. A process whose starter
    was killed may still be about to end, hence the patience.

    Raises:
        ConflictError: Another process has it.
    """
    await asyncio.to_thread(partial(folder.mkdir, parents=True, exist_ok=True))
    lock = (folder / "lock").open("w")
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            await asyncio.sleep(_LOCK_SECONDS)
        else:
            return lock
    lock.close()
    raise ConflictError(f"Another process uses the index in {folder}.", hint="Give each replica of discovery a folder of its own.")
