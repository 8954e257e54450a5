"""The logs of a group and the teams nested in it as one, in the one order in which the system stored it: the sequence.

From a place on, back from one, and how all of them stood at one. Which teams there are is told by the states of their parents: they
name every team that has not ended, and those that ended last.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Self

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.group.requests import GroupSnapshot
from ioa.page_size import count_page
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.reads import MAX_LOG_PAGE_BYTES, MAX_PAGE_ENTRIES

_PAGE, _PAGE_BYTES = MAX_PAGE_ENTRIES, MAX_LOG_PAGE_BYTES
"""Maximum entries that are read and not yet returned, of all logs together, and their maximum stored size; at least one entry.

Decoded entries take about eleven times their stored size.
"""


async def conversation(groups: NatsSystemClient, comm_id: CommId, *, after: int = 0) -> list[StoredEntry]:
    """Read all that is stored of a group and its nested teams behind a sequence, in order.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    async with aclosing(read_on(groups, comm_id, after=after)) as entries:
        return [stored async for stored in entries]


async def read_on(
    groups: NatsSystemClient, comm_id: CommId, *, after: int = 0, page_size: int = _PAGE
) -> AsyncGenerator[StoredEntry, None]:
    """Yield what is stored of a group and its nested teams behind a sequence, in order; little of it is held at a time.

    Args:
        groups: Where the logs are.
        comm_id: The group.
        after: The sequence.
        page_size: How many entries are wanted, about, if that is known.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    tree = await Tree.behind(groups, comm_id, after, page_size=page_size)
    while page := await tree.advance():
        for stored in page:
            if stored.seq > after:
                yield stored


async def read_back(
    groups: NatsSystemClient, comm_id: CommId, *, before: int, page_size: int = _PAGE
) -> AsyncGenerator[StoredEntry, None]:
    """Yield what is stored of a group and its nested teams before a sequence, the last entry first; see `read_on`.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    limit = min(page_size, _PAGE)
    while True:
        found = await _page_before(groups, comm_id, before=before, limit=limit)
        is_last = len(found) < limit and sum(stored.size_bytes for stored in found) < _PAGE_BYTES
        before = found[0].seq if found else 0
        while found:
            yield found.pop()
        if is_last:
            return


async def _page_before(groups: NatsSystemClient, comm_id: CommId, *, before: int, limit: int) -> list[StoredEntry]:
    """Read the last entries before a sequence, in order; fewer than `limit` are all, unless they have the bytes of a page."""
    heads = {comm_id: before - 1}
    found, horizon = list[StoredEntry](), 0
    while True:
        due = {one: seq for one, seq in heads.items() if seq > horizon}
        if due:
            latest = max(due, key=due.__getitem__)
            heads[latest] = 0  # whatever is wanted of it is read by now
            page = await groups.group_entries(latest, before=before, limit=limit, max_bytes=_PAGE_BYTES)
            found = _last(sorted([*found, *page], key=_seq), limit)
            is_full = len(found) == limit or sum(stored.size_bytes for stored in found) >= _PAGE_BYTES
            horizon = found[0].seq if is_full else 0
        elif new := {nested for stored in found for nested in stored.entry.state.nested} - heads.keys():
            heads = _sequences(await heads_of_tree(groups, [*new], before - 1)) | heads
        else:
            return found


def _last(found: Sequence[StoredEntry], limit: int) -> list[StoredEntry]:
    """Return the last entries, so many, or up to the one by which they have the bytes of a page."""
    number = count_page((stored.size_bytes for stored in reversed(found)), _PAGE_BYTES, limit)
    return [*found[len(found) - number :]]


def _sequences(heads: Mapping[CommId, GroupSnapshot | None]) -> dict[CommId, int]:
    """Keep no more of where groups stood than at which sequence; 0 of those that were not yet."""
    return {comm_id: 0 if head is None else head.seq for comm_id, head in heads.items()}


async def heads_of_tree(groups: NatsSystemClient, roots: Sequence[CommId], at: int) -> Mapping[CommId, GroupSnapshot | None]:
    """Tell where groups stood at a sequence, and the teams whose parents' states name them; None of those that were not yet.

    Raises:
        UnavailableError: The logs cannot be read now.
        UnreadableEntryError: One of these entries is garbage.
    """
    found: dict[CommId, GroupSnapshot | None] = dict.fromkeys(roots)
    left = [*found] if at > 0 else []
    while left:
        heads = await groups.heads(left, at=at)
        found |= heads
        left = [nested for head in heads.values() for nested in head.nested if nested not in found]
        found |= dict.fromkeys(left)
    return found


def _seq(stored: StoredEntry) -> int:
    return stored.seq


@dataclass
class _Log:
    """How far one group's log was read, to `position`. All its entries up to `known` are `held` or were handed out."""

    position: int
    known: int
    held: deque[StoredEntry] = field(default_factory=deque)


class Tree:
    """Reads the logs of a group and its nested teams, and merges them by sequence.

    An entry is handed out once every other log is known up to it. A nested team's log begins behind the entry of its parent's that
    opened it, and ends before the one that closes it, so that it is read from the one to the other.

    The entries that are held have one bound for all logs.
    """

    def __init__(self, groups: NatsSystemClient, comm_id: CommId, heads: Mapping[CommId, int], page_size: int) -> None:
        self._groups = groups
        self._page_size = min(page_size, _PAGE)
        self._root = comm_id
        self._logs = {one: _Log(seq, seq) for one, seq in heads.items()}

    @classmethod
    async def behind(cls, groups: NatsSystemClient, comm_id: CommId, after: int, *, page_size: int = _PAGE) -> Self:
        """Begin with the groups that had not ended by a sequence, each behind its last entry by then.

        That may be another one a moment later, if the log has not come to the sequence yet: what is handed out can lie before it.

        Args:
            groups: Where the logs are.
            comm_id: The group.
            after: The sequence.
            page_size: How many entries of all logs are held at a time.

        Raises:
            UnavailableError: The logs cannot be read now.
            UnreadableEntryError: An entry is garbage.
        """
        heads = await heads_of_tree(groups, [comm_id], after) if after else {comm_id: None}
        unended = {one: head for one, head in heads.items() if head is None or not head.state.phase.is_terminal}
        return cls(groups, comm_id, _sequences(unended), page_size)

    @property
    def open_groups(self) -> Sequence[CommId]:
        """The groups in which something can still happen, in the order in which they were met: the root is first."""
        return [*self._logs]

    @property
    def has_ended(self) -> bool:
        """Whether the root's last entry was handed out."""
        return self._root not in self._logs

    async def advance(self) -> list[StoredEntry]:
        """Read on and return what comes next, about a page; nothing if there is no more now.

        Raises:
            UnavailableError: A log cannot be read now; nothing is lost by asking again.
            UnreadableEntryError: An entry is garbage.
        """
        await self._read(sys.maxsize)
        await self._read(max((log.held[-1].seq for log in self._logs.values() if log.held), default=0))
        return [*self._free()]

    async def _read(self, target: int) -> None:
        """Read on in every log of which nothing is held and that is not known up to a sequence. All logs share one page."""
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

    def _free(self) -> Iterator[StoredEntry]:
        """Hand out what is next in all logs, until one has to be read on."""
        while self._logs:
            horizon = min(log.known for log in self._logs.values())
            first = min((log for log in self._logs.values() if log.held), key=lambda log: log.held[0].seq, default=None)
            if first is None or first.held[0].seq > horizon:
                return
            stored = first.held.popleft()
            match stored.entry.event:
                case SubgroupOpened(subgroup=subgroup):
                    self._logs[subgroup] = _Log(stored.seq, stored.seq)
                case SubgroupClosed(subgroup=subgroup):
                    self._logs.pop(subgroup, None)
            if stored.entry.state.phase.is_terminal:
                self._logs.pop(stored.entry.state.comm_id, None)
            yield stored
