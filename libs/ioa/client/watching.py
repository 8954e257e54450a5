"""Live view of a group and its nested groups: the entries by sequence as they are appended, and progress reports."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import structlog

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.attention import Attention
from ioa.client.history import HistoryReader
from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId

News = StoredEntry | Said
"""An entry, or a progress report outside of the log."""

_END = 2**63 - 2
"""A sequence after all entries."""
_AGAIN_SECONDS = 1.0
"""Pause before a failed read is repeated."""
R = TypeVar("R")

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def watch(
    groups: NatsSystemClient, comm_id: CommId, *, after: int = 0, until: Callable[[], Awaitable[object]] | None = None
) -> AsyncIterator[AsyncIterator[News]]:
    """Open an iterator over each entry of a group and its nested groups after a sequence, once, until the group has ended.

    The group need not exist yet. After an interruption, continue from the sequence of the last entry, in any process. Progress
    reports are yielded as they arrive, and only while the iterator is open. Outages are waited out.

    Args:
        groups: Access to the logs.
        comm_id: The group.
        after: The sequence.
        until: Waits for the result of the group's goal. Then the iterator ends after the present entries: there are none if the
            goal was rejected, or ended without a group.

    Raises:
        UnreadableEntryError: An entry cannot be decoded.
    """
    heard = _Heard()
    root = await patiently(partial(_root_of, groups, comm_id))
    async with groups.listen(root, heard), beside(*([] if until is None else [heard.end_after(until)])):

        async def news() -> AsyncIterator[News]:
            reader = HistoryReader(groups, comm_id)
            await patiently(partial(reader.open, after))
            while not reader.has_ended:
                is_over = heard.is_over
                page = await patiently(reader.advance)
                for report in heard.reports():
                    yield report
                for stored in page:
                    if stored.seq > after:
                        yield stored
                    if stored.entry.state.comm_id == comm_id and stored.entry.state.phase.is_terminal:
                        return
                if page:
                    heard.hint()
                elif is_over:
                    return
                else:
                    await heard.wait()

        yield news()


async def _root_of(groups: NatsSystemClient, comm_id: CommId) -> CommId:
    """Return the root group of the goal that a group works for; a group that does not exist yet is the root of its own goal."""
    head = (await groups.heads([comm_id], at=_END)).get(comm_id)
    return comm_id if head is None else head.state.name.comm_id


async def patiently(read: Callable[[], Awaitable[R]]) -> R:
    """Return the value of a read, which is repeated every second while NATS or a service does not answer."""
    while True:
        try:
            return await read()
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
            await asyncio.sleep(_AGAIN_SECONDS)


class _Heard(Attention):
    """Hints and progress reports that were not processed yet, and whether the goal of the group has a result; see `watch`."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = False
        self._reports: deque[Said] = deque()

    async def end_after(self, until: Callable[[], Awaitable[object]]) -> None:
        """Note that the goal has a result when `until` returns."""
        await until()
        self.is_over = True
        self.look()

    def report(self, said: Said) -> None:
        """Store a progress report."""
        self._reports.append(said)
        self.look()

    def reports(self) -> Iterator[Said]:
        """Yield and remove the stored reports."""
        while self._reports:
            yield self._reports.popleft()
