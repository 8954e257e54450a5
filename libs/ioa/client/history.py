"""The logs of a group and the teams nested in it as one, in the one order in which the system stored it: the sequence.

From a place on, back from one, and how all of them stood at one. Which teams there are is told by the states of their parents: they
name every team that has not ended, and those that ended last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from ioa.group.events import SubgroupClosed, SubgroupOpened
from ioa.group.requests import GroupSnapshot
from ioa.ports.group_client import GroupClient
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId

_PAGE = 256
_FIRST = 8
"""How many entries of a log are read at first where their bytes are bounded, until it is known how large they are."""


async def conversation(groups: GroupClient, comm_id: CommId, *, after: int = 0, limit: int | None = None) -> list[StoredEntry]:
    """Read what is stored of a group and its nested teams behind a sequence, in order; fewer than `limit` are all there is.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    page_size = _PAGE if limit is None else min(limit, _PAGE)
    tree, found = await Tree.behind(groups, comm_id, after, page_size=page_size), list[StoredEntry]()
    while (limit is None or len(found) < limit) and (page := await tree.advance()):
        found += [stored for stored in page if stored.seq > after]
    return found[:limit]


async def conversation_before(groups: GroupClient, comm_id: CommId, *, before: int, limit: int) -> list[StoredEntry]:
    """Read the last entries of a group and its nested teams before a sequence, in order; fewer than `limit` are all there are.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    heads = dict(await heads_of_tree(groups, [comm_id], before - 1))
    found, horizon = list[StoredEntry](), 0
    while True:
        due = {one: head.seq for one, head in heads.items() if head is not None and head.seq > horizon}
        if due:
            latest = max(due, key=due.__getitem__)
            heads[latest] = None  # whatever is wanted of it is read by now
            found = sorted([*found, *await groups.entries_before(latest, before=before, limit=limit)], key=_seq)[-limit:]
            horizon = found[0].seq if len(found) == limit else 0
        elif new := {nested for stored in found for nested in stored.entry.state.nested} - heads.keys():
            heads |= {one: head for one, head in (await heads_of_tree(groups, [*new], before - 1)).items() if one not in heads}
        else:
            return found


async def heads_of_tree(groups: GroupClient, roots: Sequence[CommId], at: int) -> Mapping[CommId, GroupSnapshot | None]:
    """Tell where groups stood at a sequence, and the teams whose parents' states name them; None of those that were not yet.

    Raises:
        UnavailableError: The logs cannot be read now.
        UnreadableEntryError: One of these entries is garbage.
    """
    known = dict.fromkeys(roots)
    if at < 1:
        return known
    while True:
        heads = await groups.heads([*known], at=at)
        named = known | dict.fromkeys(nested for head in heads.values() for nested in head.nested)
        if len(named) == len(known):
            return {comm_id: heads.get(comm_id) for comm_id in known}
        known = named


def _seq(stored: StoredEntry) -> int:
    return stored.seq


@dataclass
class _Log:
    """How far one group's log was read. All its entries up to `known` are `held` or were handed out."""

    position: int
    known: int
    held: deque[StoredEntry] = field(default_factory=deque)


class Tree:
    """Reads the logs of a group and its nested teams, and merges them by sequence.

    An entry is handed out once every other log is known up to it. A nested team's log begins behind the entry of its parent's that
    opened it, and ends before the one that closes it, so that it is read from the one to the other.
    """

    def __init__(
        self, groups: GroupClient, comm_id: CommId, heads: Mapping[CommId, int], page_size: int, page_bytes: int | None
    ) -> None:
        self._groups = groups
        self._page_size = page_size
        self._page_bytes = page_bytes
        self._step = page_size if page_bytes is None else min(_FIRST, page_size)
        self._root = comm_id
        self._logs = {one: _Log(seq, seq) for one, seq in heads.items()}

    @classmethod
    async def behind(
        cls, groups: GroupClient, comm_id: CommId, after: int, *, page_size: int = _PAGE, page_bytes: int | None = None
    ) -> Self:
        """Begin with the groups that had not ended by a sequence, each behind its last entry by then.

        That may be another one a moment later, if the log has not come to the sequence yet: what is handed out can lie before it.

        Args:
            groups: Where the logs are.
            comm_id: The group.
            after: The sequence.
            page_size: How many entries of a log are read at a time.
            page_bytes: About how many bytes the pages of all logs together may have; any number if None.

        Raises:
            UnavailableError: The logs cannot be read now.
            UnreadableEntryError: An entry is garbage.
        """
        heads = await heads_of_tree(groups, [comm_id], after) if after else {comm_id: None}
        unended = {one: head for one, head in heads.items() if head is None or not head.state.phase.is_terminal}
        return cls(groups, comm_id, {one: 0 if head is None else head.seq for one, head in unended.items()}, page_size, page_bytes)

    @property
    def open_groups(self) -> Sequence[CommId]:
        """The groups in which something can still happen, in the order in which they were met: the root is first."""
        return [*self._logs]

    @property
    def has_ended(self) -> bool:
        """Whether the root's last entry was handed out."""
        return self._root not in self._logs

    async def advance(self) -> list[StoredEntry]:
        """Read on and return what comes next, about a page of each log; nothing if there is no more now.

        Raises:
            UnavailableError: A log cannot be read now; nothing is lost by asking again.
            UnreadableEntryError: An entry is garbage.
        """
        await self._read(None)
        await self._read(max((log.position for log in self._logs.values()), default=0))
        return [*self._free()]

    async def _read(self, target: int | None) -> None:
        """Read on in every log of which nothing is held, or with a target in those that are not known up to it."""
        for comm_id, log in self._logs.items():
            if log.held if target is None else log.known >= target:
                continue
            asked = self._step
            page = await self._groups.entries(comm_id, after=log.position, limit=asked)
            self._learn(page)
            log.held.extend(page)
            log.position = page[-1].seq if page else log.position
            log.known = max(log.known, log.position, 0 if target is None or len(page) == asked else target)

    def _learn(self, page: Sequence[StoredEntry]) -> None:
        """Read as many entries next time as there is room for, if they are as large as these."""
        if page and self._page_bytes is not None:
            room = self._page_bytes * len(page) // max(1, len(self._logs) * sum(stored.size_bytes for stored in page))
            self._step = max(1, min(4 * self._step, room, self._page_size))

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
