"""The shard that answers now, and how another one takes its place when it has grown.

A search tree is built by a process of its own over a copy, at low priority, while the shard goes on answering and being
written. What was written meanwhile is remembered by agent, carried over when the tree stands, and the new shard takes over
between two writes. A search is answered by the one or by the other, never by neither.
"""

from __future__ import annotations

import asyncio
import shutil
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import structlog

from ioa.errors import IoaError
from ioa_discovery.index.shard_requests import (
    STAMP,
    BuildTree,
    Checkpoint,
    CopyShard,
    DeleteAgents,
    FetchAgents,
    OpenShard,
    PointRecord,
    PutAgents,
    ShardState,
    TakeOver,
)
from ioa_discovery.workers.worker_pipe import open_pipe
from ioa_discovery.workers.worker_process import ChildWorker, beside, open_worker

GROW_BY_POINTS = 20_000
"""So many points may be searched one by one beside the search tree, or a tenth of it, if that is more."""
_GROW_BY_SHARE = 0.1
EDGE_PROCESS = "ioa_discovery.index.edge_process"
_CARRIED_AGENTS = 64
_CHECKPOINT_AGENTS = 10_000
"""Changes to so many agents are replayed at the next start at most."""
_REST_SECONDS = 30.0

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_live_shard(
    opening: OpenShard,
    *,
    inherited: Sequence[int],
    process: Process,
    restarted: Callable[[], None],
    grow_by: int = GROW_BY_POINTS,
) -> AsyncIterator[LiveShard]:
    """Open the store's current shard in a process of its own, and let it grow, until the block ends.

    Args:
        opening: Which store.
        inherited: File descriptors that each process of it keeps open.
        process: The first of them, already started.
        restarted: Is called when the process had died and runs again, perhaps with less than it had.
        grow_by: So many points outside the search tree make a new one.

    Raises:
        IoaError: The engine is wrong, or the store cannot be had.
    """
    async with open_worker(EDGE_PROCESS, opening, inherited=inherited, restarted=restarted, process=process) as worker:
        shard = LiveShard(opening, worker, inherited, restarted, grow_by)
        async with beside(shard.keep_growing()):
            yield shard


class LiveShard:
    """Whichever shard answers now. Made by `open_live_shard`."""

    def __init__(
        self,
        opening: OpenShard,
        worker: ChildWorker,
        inherited: Sequence[int],
        restarted: Callable[[], None],
        grow_by: int,
    ) -> None:
        self._opening = opening
        self._worker = worker
        self._inherited = inherited
        self._restarted = restarted
        self._grow_by = grow_by
        self._writing = asyncio.Lock()
        self._touched: dict[str, None] | None = None
        self._unsaved_agents = 0
        self._has_grown = asyncio.Event()
        state = cast(ShardState, worker.state)
        self._name, self._built_points = state.name, state.built_points
        self._note_growth(state.points - state.built_points)

    @property
    def pid(self) -> int | None:
        """The process that answers now; None while it is being started again."""
        return self._worker.pid

    @property
    def built_points(self) -> int:
        """How many points the search tree was built over, or had left at the last start; 0 without one."""
        return self._built_points

    async def read(self, request: object) -> object:
        """Ask something that changes nothing, before any write that waits."""
        return await self._worker.ask(request, urgent=True)

    async def write(self, request: object, agent_ids: Sequence[str]) -> None:
        """Change something about some agents. It is there after a crash when this returns."""
        async with self._writing:
            outside = cast(int, await self._worker.ask(request))
            if self._touched is not None:
                self._touched.update(dict.fromkeys(agent_ids))
            self._unsaved_agents += len(agent_ids)
            if self._unsaved_agents >= _CHECKPOINT_AGENTS:
                await self._worker.ask(Checkpoint())
                self._unsaved_agents = 0
            self._note_growth(outside)

    async def discard(self) -> None:
        """Drop the store, which answers wrongly or not at all, and begin with an empty one."""
        _log.error("index_discarded", folder=self._opening.folder)
        await asyncio.to_thread((Path(self._opening.folder) / STAMP).unlink, missing_ok=True)
        self._worker.kill()

    async def keep_growing(self) -> None:
        """Build a search tree whenever the shard has outgrown the one it has; for ever."""
        async with AsyncExitStack() as lives:
            while True:
                await self._has_grown.wait()
                try:
                    await self._grow(lives)
                except (IoaError, OSError) as error:
                    _log.error("search_tree_not_built", error=str(error))
                    await asyncio.sleep(_REST_SECONDS)

    async def _grow(self, lives: AsyncExitStack) -> None:
        started = asyncio.get_running_loop().time()
        try:
            built = await self._build()
            opening = replace(self._opening, shard=built.name)
            async with AsyncExitStack() as own:
                successor = await own.enter_async_context(
                    open_worker(EDGE_PROCESS, opening, inherited=self._inherited, restarted=self._restarted)
                )
                try:
                    await self._hand_over(successor, built)
                finally:
                    if self._worker is successor:  # else it ends here: it would go on with its copy of all, beside the next one
                        await lives.enter_async_context(own.pop_all())
        finally:
            self._touched = None
        _log.info(
            "search_tree_built",
            points=built.points,
            seconds=round(asyncio.get_running_loop().time() - started, 1),
        )

    async def _build(self) -> ShardState:
        """Copy the shard while nobody writes, and build the tree over the copy in a process of its own."""
        async with AsyncExitStack() as stack:
            async with self._writing:
                await self._worker.ask(Checkpoint())
                request = CopyShard(self._opening, self._name, self._built_points + self._outside)
                builder = await stack.enter_async_context(open_pipe(EDGE_PROCESS, request, inherited=self._inherited))
                self._touched = {}
            return cast(ShardState, await builder.ask(BuildTree()))

    async def _hand_over(self, successor: ChildWorker, built: ShardState) -> None:
        """Carry over what was written meanwhile, the last of it while nobody writes, and let the successor answer."""
        assert self._touched is not None
        while len(self._touched) > _CARRIED_AGENTS:
            await self._carry_over(successor)
        async with self._writing:
            while self._touched:
                await self._carry_over(successor)
            outside = cast(int, await successor.ask(TakeOver(built.points)))
            # From now on the store itself names this shard.
            successor.opening = self._opening
            predecessor, self._worker = self._worker, successor
            outgrown, self._name = self._name, built.name
            self._built_points = built.points
            self._has_grown.clear()
            self._note_growth(outside)
        await predecessor.retire()
        await asyncio.to_thread(shutil.rmtree, Path(self._opening.folder) / outgrown, ignore_errors=True)

    async def _carry_over(self, successor: ChildWorker) -> None:
        assert self._touched is not None
        agent_ids = list(self._touched)[:_CARRIED_AGENTS]
        for agent_id in agent_ids:
            del self._touched[agent_id]
        records = cast(list[PointRecord], await self._worker.ask(FetchAgents(agent_ids)))
        await successor.ask(PutAgents(agent_ids, records) if records else DeleteAgents(agent_ids))

    def _note_growth(self, outside: int) -> None:
        self._outside = outside
        if outside > max(self._grow_by, _GROW_BY_SHARE * self._built_points):
            self._has_grown.set()
