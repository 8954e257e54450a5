"""What one user's goals leave of a pool for another's."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from ioa.adapters.system_clock import SystemClock
from ioa.errors import NotYetError
from ioa.protocol.cards import Load
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, PoolId, UserId
from ioa.protocol.registry import CardRecord, Renewal
from ioa.protocol.setup.open_groups import OpenGroup
from ioa_groups import shares
from ioa_groups.shares import LEAST, PoolShares
from tests.rig.memory_open_groups import MemoryOpenGroups
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView
from tests.unit.group.scenario import START, card

ADA, SUMS = AgentId("ada"), PoolId("sums")
ANNA, BEN = UserId("anna"), UserId("ben")


class _Pool:
    """A pool with one agent, and what is open."""

    def __init__(self) -> None:
        self.cards, self.leases, self.open = MemoryCards(), MemoryLeases(SystemClock(), timedelta(hours=1)), MemoryOpenGroups()
        self.shares = PoolShares(MemoryRegistryView(self.cards, self.leases), self.open)

    async def come(self, *, slots: int, tasks: int = 0) -> None:
        """Have the agent come online."""
        await self.cards.put(ADA, CardRecord(card=card(ADA).model_copy(update={"pool": SUMS}), registered_at=START))
        await self.leases.put(ADA, Renewal(load=Load(slots=slots, tasks=tasks)))

    async def take(self, user: UserId, *numbers: int) -> None:
        """Hand out goals of a user."""
        for number in numbers:
            comm_id = CommId(f"{user}-{number}")
            await self.open.put(LOCAL, comm_id, OpenGroup(goal_id=GoalId(comm_id), deadline=START))
            await self.shares.take(user, SUMS, comm_id)


async def test_a_user_fills_half_of_a_pool_and_another_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond that waits until a goal has ended, or is told to come again; whoever else comes does not wait."""
    monkeypatch.setattr(shares, "PATIENCE", timedelta(milliseconds=50))
    pool = _Pool()
    await pool.come(slots=8)
    await pool.take(ANNA, *range(4))
    with pytest.raises(NotYetError):
        await pool.take(ANNA, 4)
    await pool.take(BEN, *range(4))
    async with asyncio.TaskGroup() as group:
        group.create_task(pool.take(ANNA, 4))
        await pool.open.remove(CommId("anna-2"))


async def test_goals_that_leave_the_pool_idle_are_followed_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the pool has had time to say that it is not busy; while it is, no more come."""
    monkeypatch.setattr(shares, "PATIENCE", timedelta(milliseconds=50))
    monkeypatch.setattr(shares, "SHOWN_WITHIN", timedelta(0))
    idle, busy = _Pool(), _Pool()
    await idle.come(slots=1)
    await busy.come(slots=1, tasks=1)
    await idle.take(ANNA, *range(LEAST + 5))
    await busy.take(ANNA, *range(LEAST))
    with pytest.raises(NotYetError):
        await busy.take(ANNA, LEAST)


async def test_nothing_waits_for_a_pool_that_is_away() -> None:
    """All of a user's goals are in its queue when it comes back."""
    await _Pool().take(ANNA, *range(20))
