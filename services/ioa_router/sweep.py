"""Looking at everything that is open once more: at the start, and after each time that NATS was out of reach.

Nothing that is open waits for a sweep: timers move groups on. A sweep makes good what a power cut took, so it may take its time: it
rests as long as it works, and a group that cannot be looked at holds up no other one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import UnavailableError
from ioa.ports.open_groups import OpenGroups
from ioa.protocol.ids import CommId
from ioa.runtime.group_metrics import unreadable

_PAGE = 500
_SIDE_BY_SIDE = 8
_SOON_SECONDS, _LONGEST_SECONDS = 1.0, 60.0

_log = structlog.get_logger(__name__)


class Sweep:
    """Look at every open group whenever it is asked for.

    Args:
        open_groups: What is open.
        look_at: Brings one group in order.
    """

    def __init__(self, open_groups: OpenGroups, look_at: Callable[[CommId], Awaitable[None]]) -> None:
        self._open = open_groups
        self._look_at = look_at
        self._wanted = asyncio.Event()
        self._wanted.set()

    def begin_again(self) -> None:
        """Ask for another sweep, which begins when the one that is under way has ended."""
        self._wanted.set()

    async def keep(self) -> None:
        """Sweep at once and then whenever asked, for ever. Groups that were out of reach are looked at again, ever more rarely."""
        pause, put_off = _SOON_SECONDS, list[CommId]()
        while True:
            if await self._is_wanted(pause if put_off else None):
                self._wanted.clear()
                pause = _SOON_SECONDS
                try:
                    put_off = await self.once()
                except UnavailableError as error:
                    _log.warning("sweep_put_off", error=error.message)
                    await asyncio.sleep(_SOON_SECONDS)
                    self._wanted.set()
            else:
                pause = min(pause * 2, _LONGEST_SECONDS)
                put_off = await self._look_at_all(put_off)

    async def once(self) -> list[CommId]:
        """Look at every open group and return those that were out of reach.

        Raises:
            UnavailableError: What is open cannot be listed now.
        """
        put_off: list[CommId] = []
        after, complete = 0, False
        while not complete:
            page = await self._open.page(after=after, limit=_PAGE)
            put_off += await self._look_at_all(page.comm_ids)
            after, complete = page.last, page.complete
        return put_off

    async def _is_wanted(self, seconds: float | None) -> bool:
        try:
            async with fail_after(seconds):
                return await self._wanted.wait()
        except TimeoutError:
            return False

    async def _look_at_all(self, comm_ids: Sequence[CommId]) -> list[CommId]:
        """Look at groups, a few side by side, and rest in between as long as that took."""
        loop, put_off = asyncio.get_running_loop(), list[CommId]()
        for first in range(0, len(comm_ids), _SIDE_BY_SIDE):
            started = loop.time()
            async with TaskGroup() as group:
                for comm_id in comm_ids[first : first + _SIDE_BY_SIDE]:
                    group.create_task(self._look_at_one(comm_id, put_off))
            await asyncio.sleep(loop.time() - started)
        return put_off

    async def _look_at_one(self, comm_id: CommId, put_off: list[CommId]) -> None:
        try:
            await self._look_at(comm_id)
        except UnavailableError as error:
            _log.warning("group_out_of_reach", comm_id=comm_id, error=error.message)
            put_off.append(comm_id)
        except Exception:  # noqa: BLE001 - one unreadable group must not stop the sweep
            unreadable.inc()
            _log.exception("group_unreadable", comm_id=comm_id)
