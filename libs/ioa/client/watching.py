"""A group and the teams nested in it as one conversation, in the one order in which the system stored it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import structlog

from ioa.attention import Attention
from ioa.errors import UnavailableError
from ioa.group.events import Said, SubgroupClosed, SubgroupOpened
from ioa.ports.group_client import GroupClient
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId

News = StoredEntry | Said
"""An entry, or a report of progress that is none."""

_PAGE = 256
_AGAIN_SECONDS = 1.0
"""When to try again what is out of reach."""

_log = structlog.get_logger(__name__)


async def conversation(groups: GroupClient, comm_id: CommId, *, after: int = 0) -> list[StoredEntry]:
    """Read what is stored of a group and its nested teams behind a sequence, in order.

    Raises:
        UnavailableError: The log cannot be read now.
        UnreadableEntryError: One of the entries is garbage.
    """
    tree, found = _Tree(groups, comm_id), list[StoredEntry]()
    while page := await tree.advance():
        found += page
    return [stored for stored in found if stored.seq > after]


@asynccontextmanager
async def watch(groups: GroupClient, comm_id: CommId, *, after: int = 0) -> AsyncIterator[AsyncIterator[News]]:
    """Open the view of a group and its nested teams: every entry behind `after`, once, as they come, until the group has ended.

    The group need not exist yet. Sequences rise over all of these groups, so that whoever was interrupted goes on behind the last
    one seen, in whichever process. Reports of progress come as they are heard, from now on. An outage is waited out.

    Raises:
        UnreadableEntryError: An entry is garbage; no version of any program can read it.
    """
    tree, heard = _Tree(groups, comm_id), _Heard()
    async with AsyncExitStack() as stack:

        async def news() -> AsyncIterator[News]:
            listened: set[CommId] = set()
            while not tree.has_ended:
                for one in tree.open_groups - listened:
                    listened.add(one)
                    await stack.enter_async_context(groups.listen(one, heard))
                page = await _patiently(tree)
                for report in heard.reports():
                    yield report
                for stored in page:
                    if stored.seq > after:
                        yield stored
                    if stored.entry.state.comm_id == comm_id and stored.entry.state.phase.is_terminal:
                        return
                if page:
                    heard.hint()
                elif tree.open_groups <= listened:
                    await heard.wait()

        yield news()


async def _patiently(tree: _Tree) -> list[StoredEntry]:
    while True:
        try:
            return await tree.advance()
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
            await asyncio.sleep(_AGAIN_SECONDS)


class _Heard(Attention):
    """What was heard and not yet looked into."""

    def __init__(self) -> None:
        super().__init__()
        self._reports: deque[Said] = deque()

    def report(self, said: Said) -> None:
        """Take a report of progress."""
        self._reports.append(said)
        self.look()

    def reports(self) -> Iterator[Said]:
        """Hand the reports out."""
        while self._reports:
            yield self._reports.popleft()


@dataclass
class _Log:
    """How far one group's log was read. All its entries up to `known` are `held` or were handed out."""

    position: int
    known: int
    held: deque[StoredEntry] = field(default_factory=deque)


class _Tree:
    """Reads the logs of a group and its nested teams, and merges them by sequence.

    An entry is handed out once every other log is known up to it. A nested team's log begins behind the entry of its parent's that
    opened it, and ends before the one that closes it, so that it is read from the one to the other.
    """

    def __init__(self, groups: GroupClient, comm_id: CommId) -> None:
        self._groups = groups
        self._root = comm_id
        self._logs = {comm_id: _Log(0, 0)}

    @property
    def open_groups(self) -> set[CommId]:
        """The groups in which something can still happen."""
        return set(self._logs)

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
            page = await self._groups.entries(comm_id, after=log.position, limit=_PAGE)
            log.held.extend(page)
            log.position = page[-1].seq if page else log.position
            log.known = max(log.known, log.position, 0 if target is None or len(page) == _PAGE else target)

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
