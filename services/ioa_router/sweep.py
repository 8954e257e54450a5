"""Check of all open groups: at the start, and after each reconnect to NATS.

Timers drive open groups; a sweep only repairs the losses of a power failure, so it may be slow. It pauses as long as it works. A
group whose log does not answer delays no other group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from ioa.adapters.nats.stores.open_group_store import NatsOpenGroups
from ioa.concurrency import TaskGroup
from ioa.errors import UnavailableError
from ioa.protocol.ids import CommId
from ioa.retry import pauses

_PAGE = 500
_CONCURRENT = 8
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0

_log = structlog.get_logger(__name__)


class Sweep:
    """Check every open group when requested.

    Args:
        open_groups: Index of open groups.
        check: Checks one group and repairs its timers and effects.
    """

    def __init__(self, open_groups: NatsOpenGroups, check: Callable[[CommId], Awaitable[None]]) -> None:
        self._open = open_groups
        self._check = check
        self._requested = asyncio.Event()
        self._requested.set()

    def request(self) -> None:
        """Request a sweep, which starts when the running one has ended."""
        self._requested.set()

    async def run(self) -> None:
        """Sweep at once and at each request, until cancelled. If a log does not answer, sweep again, with a growing delay."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            for seconds in pauses(_RETRY_SECONDS, _MAX_RETRY_SECONDS):
                try:
                    await self.once()
                    break
                except UnavailableError as error:
                    _log.warning("sweep_delayed", error=error.message)
                await asyncio.sleep(seconds)

    async def once(self) -> None:
        """Check every open group, a few concurrently. A pause after each batch is as long as the batch took.

        Raises:
            UnavailableError: The index of open groups, or the log of a group, does not answer; all other groups are checked.
        """
        loop, unavailable = asyncio.get_running_loop(), list[CommId]()
        after: int | None = 0
        while after is not None:
            comm_ids, after = await self._open.page(after=after, limit=_PAGE)
            for first in range(0, len(comm_ids), _CONCURRENT):
                started = loop.time()
                async with TaskGroup() as group:
                    for comm_id in comm_ids[first : first + _CONCURRENT]:
                        group.create_task(self._check_one(comm_id, unavailable))
                await asyncio.sleep(loop.time() - started)
        if unavailable:
            raise UnavailableError(f"The logs of {len(unavailable)} open groups do not answer, such as {unavailable[0]}.")

    async def _check_one(self, comm_id: CommId, unavailable: list[CommId]) -> None:
        try:
            await self._check(comm_id)
        except UnavailableError:
            unavailable.append(comm_id)
        except Exception:  # noqa: BLE001 - one unreadable group must not stop the sweep
            _log.exception("group_unreadable", comm_id=comm_id)
