"""Share of a pool's slots per user: goals of one user fill at most half of them, so that another user's next goal finds a slot.

Goals beyond that wait in the stream of goals, where each user has a consumer. Goals that leave slots free, because they wait for
something other than the pool, are followed by more after some seconds. Each replica counts the goals that it offered itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from ioa.adapters.nats.stores.open_group_store import NatsOpenGroups
from ioa.concurrency import fail_after
from ioa.errors import NotYetError
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import CommId, PoolId, UserId

LEAST = 2
"""Minimum goals of a user at a pool: the second starts while the first ends."""
SHOWN_WITHIN = timedelta(seconds=4)
"""Maximum time until an offered goal appears in the load that its agent reports."""
PATIENCE = timedelta(seconds=1)
"""Maximum time that a goal waits for a slot, before other goals of its user are processed."""
_CHECK_SECONDS = 0.1
_CHECKED_GOALS = 8
"""Number of offered goals that are checked for their end at once, oldest check first."""


class PoolShares:
    """Limit the goals of a user at a pool.

    Args:
        registry: Agents, their slots and their load.
        open_groups: Goals that have not ended.
    """

    def __init__(self, registry: RegistryView, open_groups: NatsOpenGroups) -> None:
        self._registry = registry
        self._open_groups = open_groups
        self._offered: defaultdict[tuple[UserId, PoolId | None], dict[CommId, float]] = defaultdict(dict)
        """Time of the offer of each goal that may not have ended."""

    async def take(self, user: UserId, pool: PoolId | None, comm_id: CommId) -> None:
        """Wait until a goal of the user may be offered to a pool (None: to any agent), and count it.

        A goal for a pool without online agents does not wait.

        Raises:
            NotYetError: The user's share was full during the maximum waiting time.
            UnavailableError: The open index does not answer.
        """
        offered = self._offered[user, pool]
        try:
            async with fail_after(PATIENCE.total_seconds()):
                await self._remove_ended(offered, [one for one, at in offered.items() if at <= _shown()][:_CHECKED_GOALS])
                while not self._has_room(offered, pool):
                    if not await self._remove_ended(offered, list(offered)[:_CHECKED_GOALS]):
                        await asyncio.sleep(_CHECK_SECONDS)
        except TimeoutError:
            raise NotYetError(f"Goals of {user} fill half of the slots of {pool or 'all agents'}.", retry_after=PATIENCE) from None
        offered[comm_id] = asyncio.get_running_loop().time()

    def _has_room(self, offered: dict[CommId, float], pool: PoolId | None) -> bool:
        records = self._registry.cards() if pool is None else self._registry.of_pool(pool)
        loads = [self._registry.load(one.card.agent_id) for one in records if self._registry.is_online(one.card.agent_id)]
        slots, tasks = sum(load.slots for load in loads), sum(load.tasks for load in loads)
        most, shown = max(LEAST, slots // 2), _shown()
        is_idle = 2 * tasks < slots and sum(at > shown for at in offered.values()) < most
        return not slots or len(offered) < most or is_idle

    async def _remove_ended(self, offered: dict[CommId, float], goals: Sequence[CommId]) -> bool:
        """Remove the ended goals among some goals, move the others to the end, and return whether any had ended."""
        before = len(offered)
        for comm_id in goals:
            is_open = await self._open_groups.find(comm_id) is not None
            at = offered.pop(comm_id, None)
            if is_open and at is not None:
                offered[comm_id] = at
        return len(offered) < before


def _shown() -> float:
    """Return the time before which an offered goal appears in its agent's load."""
    return asyncio.get_running_loop().time() - SHOWN_WITHIN.total_seconds()
