"""A group and the teams nested in it as one conversation: read when it is over, or watched as it happens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ioa.group.events import Said, SubgroupClosed, SubgroupOpened
from ioa.ports.group_client import GroupClient
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId


async def conversation(groups: GroupClient, comm_id: CommId) -> list[StoredEntry]:
    """Read the logs of a group and of its nested teams, in the order in which everything happened."""
    entries = await groups.entries(comm_id)
    for stored in list(entries):
        if isinstance(stored.entry.event, SubgroupOpened):
            entries += await conversation(groups, stored.entry.event.subgroup)
    return sorted(entries, key=lambda stored: stored.seq)


@asynccontextmanager
async def watch(groups: GroupClient, comm_id: CommId) -> AsyncIterator[AsyncIterator[StoredEntry | Said]]:
    """Open the view of a group and its nested teams: every entry from the first on, as they come, until the group has ended.

    The group need not exist yet. Each log comes in its order; a nested team's entries come between its parent's. Reports of
    progress that are no entries come as they are heard, from now on.
    """
    arrived: asyncio.Queue[StoredEntry | Said] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        watchers: dict[CommId, asyncio.Task[None]] = {}

        def watch_also(other: CommId) -> None:
            if other not in watchers:
                watchers[other] = group.create_task(groups.follow(other, arrived.put_nowait))

        async def entries() -> AsyncIterator[StoredEntry | Said]:
            order, state = _CausalOrder(), None
            while state is None or not (state.comm_id == comm_id and state.phase.is_terminal):
                one = await arrived.get()
                if isinstance(one, Said):
                    yield one
                    continue
                for stored in order.put(one):
                    if isinstance(stored.entry.event, SubgroupOpened):
                        watch_also(stored.entry.event.subgroup)
                    yield stored
                    state = stored.entry.state if stored.entry.state.comm_id == comm_id else state

        watch_also(comm_id)
        try:
            yield entries()
        finally:
            for watcher in watchers.values():
                watcher.cancel()


class _CausalOrder:
    """Put the entries of several logs into an order in which a nested team's end comes before its parent hears of it."""

    def __init__(self) -> None:
        self._held: dict[CommId, deque[StoredEntry]] = {}
        self._ended: set[CommId] = set()

    def put(self, stored: StoredEntry) -> list[StoredEntry]:
        """Take an entry, the next of its log, and return all that may be shown now."""
        self._held.setdefault(stored.entry.state.comm_id, deque()).append(stored)
        free: list[StoredEntry] = []
        while queue := next((queue for queue in self._held.values() if queue and self._is_free(queue[0])), None):
            entry = queue.popleft()
            if entry.entry.state.phase.is_terminal:
                self._ended.add(entry.entry.state.comm_id)
            free.append(entry)
        return free

    def _is_free(self, stored: StoredEntry) -> bool:
        return not isinstance(stored.entry.event, SubgroupClosed) or stored.entry.event.subgroup in self._ended
