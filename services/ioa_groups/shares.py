"""Share of a pool's slots per user: goals of one user fill at most half of them, so that another user's next goal finds a slot.

Goals that a user has offered to a pool beyond that wait in the stream of goals, where each user has a consumer. Goals that leave
slots free, because they wait for something other than the pool, are followed by more after some seconds. Each replica counts the
goals that it offered itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from ioa.adapters.nats.stores.open_groups import NatsOpenGroups
from ioa.cancellation import fail_after
from ioa.errors import NotYetError
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import CommId, PoolId, UserId

LEAST = 2
"""Minimum goals of a user at a pool: the second starts while the first ends."""
SHOWN_WITHIN = timedelta(seconds=4)
"""Maximum time until an offered goal appears in the load that its agent reports."""
PATIENCE = timedelta(seconds=5)
"""Maximum time that a goal waits for a slot, before other goals of its user are processed."""
BEHIND = timedelta(seconds=1)
"""Maximum time that a goal waits for the lock, which another goal of its user holds that waits for a slot."""

_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.2
_LOOKED_AT, _IN_PASSING = 8, 2
"""Number of goals that are checked for their end at once: while a goal waits; and with each goal that is offered."""
_AGAIN = timedelta(seconds=1)
_COUNTED_FOR = 0.5


@dataclass(frozen=True)
class _Pool:
    """Slots and tasks of a pool's online agents, at a time of the loop."""

    slots: int
    tasks: int
    at: float


@dataclass
class _Share:
    """Goals of a user at a pool.

    Attributes:
        begun: Goals that may not have ended, with the time of the offer, oldest first.
        lock: Held while a goal waits for a slot.
    """

    begun: dict[CommId, float] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PoolShares:
    """Limit the goals of a user at a pool.

    Args:
        registry: Agents, their slots and their load.
        open_groups: Goals that have not ended.
    """

    def __init__(self, registry: RegistryView, open_groups: NatsOpenGroups) -> None:
        self._registry = registry
        self._open_groups = open_groups
        self._shares: defaultdict[tuple[UserId, PoolId | None], _Share] = defaultdict(_Share)
        self._pools: dict[PoolId | None, _Pool] = {}

    async def take(self, user: UserId, pool: PoolId | None, comm_id: CommId) -> None:
        """Wait until a goal of the user may be offered to a pool (None: to any agent), and count it.

        A goal for a pool without online agents does not wait.

        Raises:
            NotYetError: The user's share was full during the maximum waiting time.
            UnavailableError: The open index does not answer.
        """
        share = self._shares[user, pool]
        try:
            async with _turn(share), fail_after(PATIENCE.total_seconds()):
                old = [comm_id for comm_id, begun in share.begun.items() if begun <= _shown()]
                await self._forget_ended(share, old[:_IN_PASSING])
                pause = _FIRST_LOOK
                while not self._has_room(share, pool):
                    if not await self._forget_ended(share, list(share.begun)[:_LOOKED_AT]):
                        await asyncio.sleep(pause)
                        pause = min(2 * pause, _LONGEST_LOOK)
        except TimeoutError:
            raise NotYetError(f"Goals of {user} fill half of the slots of {pool or 'all agents'}.", retry_after=_AGAIN) from None
        share.begun[comm_id] = asyncio.get_running_loop().time()

    def _has_room(self, share: _Share, pool: PoolId | None) -> bool:
        found = self._found(pool)
        most = max(LEAST, found.slots // 2)
        if not found.slots or len(share.begun) < most:
            return True
        shown = _shown()
        return 2 * found.tasks < found.slots and sum(begun > shown for begun in share.begun.values()) < most

    def _found(self, pool: PoolId | None) -> _Pool:
        now = asyncio.get_running_loop().time()
        found = self._pools.get(pool)
        if found is None or now - found.at > _COUNTED_FOR:
            found = self._pools[pool] = self._count(pool, now)
        return found

    def _count(self, pool: PoolId | None, now: float) -> _Pool:
        records = self._registry.cards() if pool is None else self._registry.of_pool(pool)
        online = (one.card.agent_id for one in records if self._registry.is_online(one.card.agent_id))
        loads = [self._registry.load(agent_id) for agent_id in online]
        return _Pool(sum(load.slots for load in loads), sum(load.tasks for load in loads), now)

    async def _forget_ended(self, share: _Share, goals: Sequence[CommId]) -> bool:
        """Forget those of some goals that have ended, move the others to the end, and return whether any had ended."""
        ended = False
        for comm_id in goals:
            is_open = await self._open_groups.find(comm_id) is not None
            begun = share.begun.pop(comm_id)
            if is_open:
                share.begun[comm_id] = begun
            else:
                ended = True
        return ended


@asynccontextmanager
async def _turn(share: _Share) -> AsyncIterator[None]:
    """Hold the lock of a share.

    Raises:
        TimeoutError: Another goal holds the lock.
    """
    async with fail_after(BEHIND.total_seconds()):
        await share.lock.acquire()
    try:
        yield
    finally:
        share.lock.release()


def _shown() -> float:
    """Return the time before which an offered goal appears in its agent's load."""
    return asyncio.get_running_loop().time() - SHOWN_WITHIN.total_seconds()
