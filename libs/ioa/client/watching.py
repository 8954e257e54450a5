"""A group and the teams nested in it as one conversation, in the one order in which the system stored it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import structlog

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.attention import Attention
from ioa.cancellation import fail_at
from ioa.client.history import Tree
from ioa.errors import UnavailableError
from ioa.group.events import Said
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId

News = StoredEntry | Said
"""An entry, or a report of progress that is none."""

_END = 2**63 - 2
"""A sequence after all entries."""
_AGAIN_SECONDS = 1.0
"""When to try again what is out of reach."""
_NOTHING_SECONDS, _LONGEST_SECONDS = 1.0, 15.0
"""How long nothing of a group is waited for until it is asked whether there will be any, and how long at most between two times."""
R = TypeVar("R")

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def watch(
    groups: NatsSystemClient, comm_id: CommId, *, after: int = 0, is_over: Callable[[], Awaitable[bool]] | None = None
) -> AsyncIterator[AsyncIterator[News]]:
    """Open the view of a group and its nested teams: every entry behind `after`, once, as they come, until the group has ended.

    The group need not exist yet. Sequences rise over all of these groups, so that whoever was interrupted goes on behind the last
    one seen, in whichever process. Reports of progress come as they are heard, from now on. An outage is waited out.

    Args:
        groups: Where the groups are.
        comm_id: The group.
        after: The sequence behind which to begin.
        is_over: Tells, while nothing of the group is there, whether there will be none: its goal was refused, or ended without it.

    Raises:
        UnreadableEntryError: An entry is garbage; no version of any program can read it.
    """
    heard = _Heard(is_over)
    async with groups.listen(await patiently(lambda: _root_of(groups, comm_id)), heard):

        async def news() -> AsyncIterator[News]:
            tree = await patiently(lambda: Tree.behind(groups, comm_id, after))
            while not tree.has_ended:
                page = await patiently(tree.advance)
                for report in heard.reports():
                    yield report
                for stored in page:
                    if stored.seq > after:
                        yield stored
                    if stored.entry.state.comm_id == comm_id and stored.entry.state.phase.is_terminal:
                        return
                if page:
                    heard.begin()
                elif heard.is_over:
                    return
                else:
                    await heard.wait()

        yield news()


async def _root_of(groups: NatsSystemClient, comm_id: CommId) -> CommId:
    """Return the root group of the goal that a group works for; a group that does not exist yet is the root of its own goal."""
    head = (await groups.heads([comm_id], at=_END)).get(comm_id)
    return comm_id if head is None else head.state.goal_name.comm_id


async def patiently(read: Callable[[], Awaitable[R]]) -> R:
    """Return the value of a read, which is repeated every second while NATS or a service does not answer."""
    while True:
        try:
            return await read()
        except UnavailableError as error:
            _log.warning("log_out_of_reach", error=error.message)
            await asyncio.sleep(_AGAIN_SECONDS)


class _Heard(Attention):
    """What was heard and not yet looked into, and whether there will be any; see `watch`."""

    def __init__(self, asked: Callable[[], Awaitable[bool]] | None) -> None:
        super().__init__()
        self.is_over = False
        self._asked = asked
        self._ask_in = _NOTHING_SECONDS
        self._ask_at = asyncio.get_running_loop().time() + self._ask_in
        self._reports: deque[Said] = deque()

    def begin(self) -> None:
        """Look several times: something of the group is there, so that it ends by an entry."""
        self._asked = None
        self.hint()

    async def wait(self) -> None:
        """Wait until it is worth looking again."""
        if self._asked is None:
            await super().wait()
            return
        with suppress(TimeoutError):
            async with fail_at(self._ask_at):
                await super().wait()
        if (now := asyncio.get_running_loop().time()) >= self._ask_at:  # hints come meanwhile, by which nothing is found
            self._ask_in = min(2 * self._ask_in, _LONGEST_SECONDS)
            self._ask_at = now + self._ask_in
            self.is_over = await patiently(self._asked)

    def report(self, said: Said) -> None:
        """Take a report of progress."""
        self._reports.append(said)
        self.look()

    def reports(self) -> Iterator[Said]:
        """Hand the reports out."""
        while self._reports:
            yield self._reports.popleft()
