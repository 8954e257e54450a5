"""How many goals of one user are handed out to a pool at a time, so that another user's next one finds room there.

Agents take goals in the order in which those were handed out, and work on what they have side by side: what one user has there
already is what another one waits for. So a user has half of a pool's slots filled at most, and what does not fill them, since it
waits for something else than the pool, is followed by more after a moment. And goals that end at once leave slots free and use up
what else an agent has: it searches and launches for each, both of which are counted by agent (`ioa.quotas`). So a user has half of
that, too. The rest waits in the stream of goals, where each user has a queue of his own.

Each replica counts what it has handed out itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from ioa.cancellation import fail_after, fail_at
from ioa.errors import NotYetError
from ioa.ports.open_groups import OpenGroups
from ioa.ports.registry_store import RegistryView
from ioa.protocol.ids import CommId, PoolId, UserId
from ioa.quotas import RATES, Family, Rate

LEAST = 2
"""How many a user always has handed out: one to go on with while another ends."""
SHOWN_WITHIN = timedelta(seconds=4)
"""How long it takes at most until a goal that was handed out shows in what its agent says of its load."""
PATIENCE = timedelta(seconds=5)
"""How long a goal waits here, before others of its user that go elsewhere have their turn."""
BEHIND = timedelta(seconds=1)
"""How long a goal waits behind another one of its user that finds no room. Only so many wait side by side, and what goes elsewhere
would wait behind all of them: behind a hundred that somebody keeps for two minutes."""

_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.2
_LOOKED_AT, _IN_PASSING = 8, 2
"""How many goals are looked after at a time, whether they have ended: while one waits for that; and, of those that are not new
any more, with each that is handed out, so that what is remembered does not grow where nothing waits."""
_AGAIN = timedelta(seconds=1)
_COUNTED_FOR = 0.5
_PART = 2
"""Of what an agent may search and launch, one user has one such part."""


@dataclass(frozen=True)
class _Pool:
    """How many agents of a pool are online, what they can do at once and have to do; times are the loop's."""

    agents: int
    slots: int
    tasks: int
    at: float


@dataclass
class _Share:
    """What a user has handed out to a pool, each with its time, the oldest first.

    Attributes:
        begun: What may not have ended.
        full_at: When as many as may come at once may come again.
        lock: Who hands out the next one.
        since: When who holds the lock began to hand it out.
    """

    begun: dict[CommId, float] = field(default_factory=dict)
    full_at: float = 0.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    since: float = 0.0


class PoolShares:
    """Lets goals go to a pool as far as their user's share of it allows.

    Args:
        registry: Knows what a pool can do, and what it says that it has to do.
        open_groups: Knows which goals have ended.
        rates: What one agent may ask.
    """

    def __init__(self, registry: RegistryView, open_groups: OpenGroups, rates: Mapping[Family, Rate] = RATES) -> None:
        self._registry = registry
        self._open_groups = open_groups
        of_one = [rates[family] for family in (Family.SEARCH, Family.OTHERS)]
        self._per_second = min(rate.per_second for rate in of_one) / _PART
        self._burst_seconds = min(rate.burst for rate in of_one) / _PART / self._per_second
        self._shares: defaultdict[tuple[UserId, PoolId | None], _Share] = defaultdict(_Share)
        self._pools: dict[PoolId | None, _Pool] = {}

    async def take(self, user: UserId, pool: PoolId | None, comm_id: CommId) -> None:
        """Wait until a goal of the user may go to a pool, None being anybody, and count it. For a pool that is away nothing waits.

        Raises:
            NotYetError: There has been no room for a while.
            UnavailableError: Nobody can tell what has ended.
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
                await self._pace(share, pool)
        except TimeoutError:
            raise NotYetError(f"{user} has enough goals at {pool or 'all agents'}.", retry_after=_AGAIN) from None
        share.begun[comm_id] = asyncio.get_running_loop().time()

    def _has_room(self, share: _Share, pool: PoolId | None) -> bool:
        found = self._found(pool)
        most = max(LEAST, found.slots // 2)
        if not found.slots or len(share.begun) < most:
            return True
        shown = _shown()
        return 2 * found.tasks < found.slots and sum(begun > shown for begun in share.begun.values()) < most

    async def _pace(self, share: _Share, pool: PoolId | None) -> None:
        """Wait until a pool's agents have room for one more search and launch of a user's part, and count it."""
        agents = self._found(pool).agents
        if not agents:
            return
        now = asyncio.get_running_loop().time()
        full_at = max(share.full_at, now) + 1 / (self._per_second * agents)
        await asyncio.sleep(max(0.0, full_at - now - self._burst_seconds))
        share.full_at = full_at

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
        return _Pool(len(loads), sum(load.slots for load in loads), sum(load.tasks for load in loads), now)

    async def _forget_ended(self, share: _Share, goals: Sequence[CommId]) -> bool:
        """Look after some goals, which come last then, and forget those that have ended; whether there were any."""
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
    """Wait until nobody else hands out a goal of this share, and no longer than a moment if he finds no room.

    Raises:
        TimeoutError: He finds none.
    """
    now = asyncio.get_running_loop().time
    async with fail_at(max(now(), share.since + BEHIND.total_seconds()) if share.lock.locked() else None):
        await share.lock.acquire()
    share.since = now()
    try:
        yield
    finally:
        share.lock.release()


def _shown() -> float:
    """Return since when what was handed out does not count as new any more."""
    return asyncio.get_running_loop().time() - SHOWN_WITHIN.total_seconds()
