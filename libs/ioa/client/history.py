"""Logs of a group and its nested groups, merged by sequence: forward, backward, and the states at a sequence.

The nested groups are named in the states of their parents: all that have not ended, and the last ones that ended.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from ioa.adapters.nats.streams.page_size import count_page
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.group.requests import GroupSnapshot
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.setup.reads import MAX_LOG_PAGE_BYTES, MAX_PAGE_ENTRIES

_PAGE, _PAGE_BYTES = MAX_PAGE_ENTRIES, MAX_LOG_PAGE_BYTES
"""Maximum number and stored size of the entries in memory, of all logs together; at least one entry.

Decoded entries take about eleven times their stored size.
"""


async def conversation(groups: NatsSystemClient, comm_id: CommId) -> list[StoredEntry]:
    """Read all present entries of a group and its nested groups, in order.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: An entry cannot be decoded.
    """
    async with aclosing(read_on(groups, comm_id)) as entries:
        return [stored async for stored in entries]


async def read_on(
    groups: NatsSystemClient, comm_id: CommId, *, after: int = 0, page_size: int = _PAGE
) -> AsyncGenerator[StoredEntry, None]:
    """Yield the present entries of a group and its nested groups after a sequence, in order, with one page in memory.

    Args:
        groups: Access to the logs.
        comm_id: The group.
        after: The sequence.
        page_size: Approximate number of entries that the caller needs.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: An entry cannot be decoded.
    """
    reader = HistoryReader(groups, comm_id, page_size)
    await reader.open(after)
    while page := await reader.advance():
        for stored in page:
            if stored.seq > after:
                yield stored


async def read_back(
    groups: NatsSystemClient, comm_id: CommId, *, before: int, page_size: int = _PAGE
) -> AsyncGenerator[StoredEntry, None]:
    """Yield the entries of a group and its nested groups before a sequence, the last entry first; see `read_on`.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: An entry cannot be decoded.
    """
    limit, is_full = min(page_size, _PAGE), True
    while is_full:
        found, is_full = await _page_before(groups, comm_id, before, limit)
        before = found[0].seq if found else 0
        while found:
            yield found.pop()


async def _page_before(groups: NatsSystemClient, comm_id: CommId, before: int, limit: int) -> tuple[list[StoredEntry], bool]:
    """Read the last entries before a sequence, in order, and return whether they fill a page."""
    heads = {comm_id: before - 1}  # of each group: the sequence of its last entry; 0 when the log was read
    found, is_full = list[StoredEntry](), False
    while True:
        latest = max(heads, key=heads.__getitem__)
        if heads[latest] > (found[0].seq if is_full else 0):
            heads[latest] = 0
            page = await groups.group_entries(latest, before=before, limit=limit, max_bytes=_PAGE_BYTES)
            found = sorted([*found, *page], key=lambda stored: stored.seq)
            found = found[len(found) - count_page((one.size_bytes for one in reversed(found)), _PAGE_BYTES, limit) :]
            is_full = len(found) == limit or sum(one.size_bytes for one in found) >= _PAGE_BYTES
        elif new := {nested for stored in found for nested in stored.entry.state.nested} - heads.keys():
            heads |= {one: head.seq if head else 0 for one, head in (await heads_of_tree(groups, [*new], before - 1)).items()}
        else:
            return found, is_full


async def heads_of_tree(groups: NatsSystemClient, roots: Sequence[CommId], at: int) -> Mapping[CommId, GroupSnapshot | None]:
    """Return the states at a sequence of groups and of the nested groups that these states name; None for a group opened later.

    Raises:
        UnavailableError: The logs cannot be read now.
        UnreadableEntryError: An entry cannot be decoded.
    """
    found: dict[CommId, GroupSnapshot | None] = dict.fromkeys(roots)
    left = [*found] if at > 0 else []
    while left:
        heads = await groups.heads(left, at=at)
        found |= heads
        left = [nested for head in heads.values() for nested in head.state.nested if nested not in found]
        found |= dict.fromkeys(left)
    return found


@dataclass
class _Log:
    """One group's log, read up to `position`. All its entries up to `known` are in `held` or were returned."""

    position: int
    known: int
    held: deque[StoredEntry] = field(default_factory=deque)


class HistoryReader:
    """Reads the logs of a group and its nested groups, merged by sequence.

    An entry is returned when every other log is known up to its sequence. The log of a nested group begins after the entry of its
    parent that opened it, and ends before the entry that closes it.

    Args:
        groups: Access to the logs.
        comm_id: The group.
        page_size: Maximum number of entries in memory, of all logs.
    """

    def __init__(self, groups: NatsSystemClient, comm_id: CommId, page_size: int = _PAGE) -> None:
        self._groups = groups
        self._root = comm_id
        self._page_size = min(page_size, _PAGE)
        self._logs: dict[CommId, _Log] = {}

    async def open(self, after: int) -> None:
        """Begin with the groups that had not ended at a sequence. If the sequence is in the future, earlier entries follow.

        Raises:
            UnavailableError: The logs cannot be read now.
            UnreadableEntryError: An entry cannot be decoded.
        """
        for comm_id, head in (await heads_of_tree(self._groups, [self._root], after)).items():
            if head is None or not head.state.phase.is_terminal:
                self._logs[comm_id] = _Log(head.seq, head.seq) if head else _Log(0, 0)

    @property
    def has_ended(self) -> bool:
        """Whether the group's last entry was returned, or is before the first sequence."""
        return self._root not in self._logs

    async def advance(self) -> list[StoredEntry]:
        """Return the next entries, about one page; empty if none follows now.

        Raises:
            UnavailableError: A log cannot be read now; the call can be repeated.
            UnreadableEntryError: An entry cannot be decoded.
        """
        await self._read(sys.maxsize)
        await self._read(max((log.held[-1].seq for log in self._logs.values() if log.held), default=0))
        return [*self._merge()]

    async def _read(self, target: int) -> None:
        """Read on in each log that is not known up to a sequence. All logs share one page."""
        sharers = max(1, len(self._logs))
        limit, max_bytes = max(1, self._page_size // sharers), max(1, _PAGE_BYTES // sharers)
        for comm_id, log in self._logs.items():
            if log.held or log.known >= target:
                continue
            page = await self._groups.group_entries(comm_id, after=log.position, limit=limit, max_bytes=max_bytes)
            is_all = len(page) < limit and sum(stored.size_bytes for stored in page) < max_bytes
            log.held.extend(page)
            log.position = page[-1].seq if page else log.position
            log.known = max(log.known, log.position, target if is_all and target < sys.maxsize else 0)

    def _merge(self) -> Iterator[StoredEntry]:
        """Yield the entries that come next, until a log must be read on."""
        while logs := self._logs:
            first = min((log for log in logs.values() if log.held), key=lambda log: log.held[0].seq, default=None)
            if first is None or first.held[0].seq > min(log.known for log in logs.values()):
                return
            stored = first.held.popleft()
            match stored.entry.event:
                case SubgroupOpened(subgroup=subgroup):
                    logs[subgroup] = _Log(stored.seq, stored.seq)
                case SubgroupClosed(subgroup=subgroup):
                    logs.pop(subgroup, None)
            if stored.entry.state.phase.is_terminal:
                logs.pop(stored.entry.state.comm_id, None)
            yield stored
