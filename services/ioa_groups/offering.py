"""Offering goals that are on record: to whom they name, or to the pool that fits each best, until somebody leads it.

A goal has ended, or has a group, or waits in a queue; its deadline is armed first, so that it ends in any case.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import structlog

from ioa.errors import NotYetError
from ioa.group.events import LaunchAbandoned
from ioa.group.rejection import IllegalEventError
from ioa.protocol.goals import GoalRecord, Reason
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId
from ioa.protocol.open_groups import OpenGroup, QueuedGoal, QueuedOffer
from ioa.runtime.goal_metrics import accepted, put_back
from ioa.telemetry import log_context
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.leaders import LED_WITHIN, TAKEN_WITHIN, Leaders
from ioa_groups.shares import PoolShares

_INTAKE = AgentId("intake")
_LOOK_AGAIN = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


class Offering:
    """Offers goals to agents, and sees that each is led.

    Args:
        ports: Stores and services.
        leaders: Chooses the pool for a goal without an addressee.
        shares: Limits the goals of a user at a pool; None if all goals belong to one user.
        patience: Maximum time that a goal waits for an addressee that has not registered.
    """

    def __init__(self, ports: GroupServicePorts, leaders: Leaders, shares: PoolShares | None, patience: timedelta) -> None:
        self._ports = ports
        self._leaders = leaders
        self._shares = shares
        self._patience = patience

    async def offer(self, record: GoalRecord, order: str = "") -> None:
        """Queue the goal unless it has ended or has a group; its deadline is armed first, so that it ends in any case.

        Args:
            record: The goal.
            order: By which published message it came.
        """
        goal = record.goal
        comm_id = goal.comm_id
        log_context.bind({"goal_id": goal.goal_id, "comm_id": comm_id, "traceparent": goal.traceparent})
        await self._ports.timers.schedule(comm_id, record.deadline)
        known = await self._ports.open_groups.find(comm_id)
        head = await self._ports.ledger.head(comm_id)  # afterwards, so that a group which opens meanwhile is seen
        if head is not None or await self._ports.endings.of(goal.name) is not None:
            if known is not None and known.offers:
                await self.close(goal.name)
            return
        if known is None:
            known = OpenGroup(goal_id=goal.goal_id, deadline=record.deadline, order=order)
            await self._ports.open_groups.put(comm_id, known)
        if known.waits:
            return
        if goal.agent is not None:
            await self._offer_to(goal.agent, record, known)
        else:
            await self._offer_to_the_best(record, known)

    async def look_after(self, goal: GoalName) -> timedelta | None:
        """Put a goal back that somebody took off its queue without leading it or giving it back, or has kept for minutes.

        Who leads a goal acknowledges it when its group is open, so what has left the queue without a group was dropped. Where it
        was not, after all, or who keeps it is slow, the first to launch leads it.

        Returns:
            When to look again; None if that makes no haste, since it is led, or nobody knows where it waits.
        """
        comm_id = goal.comm_id
        known = await self._ports.open_groups.find(comm_id)
        if known is None or known.queued is None or await self._ports.ledger.head(comm_id) is not None:
            return None
        queued = known.queued
        is_there = await self._ports.work.look(queued.seq) is not None
        if is_there and not await self._is_kept(comm_id, known, queued):
            return TAKEN_WITHIN
        record = await self._ports.goals.find(comm_id)
        if record is None or self._ports.clock.now() >= record.deadline:
            return None
        if await self._ports.ledger.head(comm_id) is not None:  # it was launched, and taken off the queue, just now
            return None
        if is_there:
            await self._ports.work.withdraw(queued.seq)
        seq = await self._ports.work.put(record, queued.pool, await self._ports.tickets.of(record.goal.name))
        _count_put_back(goal, queued.pool, kept=is_there)
        again = {"queued": queued.model_copy(update={"seq": seq, "taken": None}), "dropped": known.dropped + 1}
        await self._ports.open_groups.put(comm_id, known.model_copy(update=again))
        return min(_LOOK_AGAIN * (known.dropped + 1), TAKEN_WITHIN)

    async def close(self, goal: GoalName) -> None:
        """Have a goal whose group has ended be open no more: it may have been noted as open again after its end."""
        head = await self._ports.ledger.head(goal.comm_id)
        if head is not None and head.entry.state.phase.is_terminal:
            await self._ports.ledger.settle(head.entry.state)

    async def end(self, goal: GoalName, reason: Literal[Reason.NO_AGENT, Reason.FAILED], why: str) -> None:
        """End a goal that has no group; one that has ended stays as it ended."""
        event = LaunchAbandoned(
            at=self._ports.clock.now(),
            comm_id=goal.comm_id,
            goal_id=goal.goal_id,
            user=goal.user,
            by=_INTAKE,
            reason=reason,
            content=why,
        )
        try:
            await self._ports.ledger.record(event.comm_id, event)
        except IllegalEventError:
            _log.debug("goal_ended_already", goal_id=goal.goal_id)

    def pool_of(self, addressee: AgentId) -> PoolId | None:
        """Return the pool that bears the name, or that the agent of this name belongs to."""
        record = self._ports.registry.card(addressee)
        if record is not None:
            return record.card.pool
        pool = PoolId(addressee)
        return pool if self._ports.registry.of_pool(pool) else None

    async def _is_kept(self, comm_id: CommId, known: OpenGroup, queued: QueuedGoal) -> bool:
        """Whether somebody has had a goal for longer than it takes to open a group; when he took it is noted as it is seen."""
        if queued.taken is not None:
            return self._ports.clock.now() >= queued.taken + LED_WITHIN
        if await self._ports.work.was_taken(queued.pool, queued.seq):
            seen = queued.model_copy(update={"taken": self._ports.clock.now()})
            await self._ports.open_groups.put(comm_id, known.model_copy(update={"queued": seen}))
        return False

    async def _offer_to(self, addressee: AgentId, record: GoalRecord, known: OpenGroup) -> None:
        """Queue the goal for whom its user named, once there is somebody of this name."""
        pool = self.pool_of(addressee)
        why = ""
        if pool is None:
            why = f"No agent or pool {addressee!r} has ever registered; `ioa agents` lists those that have."
        if why or pool is None:
            if self._ports.clock.now() < record.accepted_at + self._patience:
                raise NotYetError(f"Nobody called {addressee} who may lead the goal has registered yet.", retry_after=_LOOK_AGAIN)
            await self.end(record.goal.name, Reason.NO_AGENT, why)
            return
        seq = await self._put(record, pool)
        await self._note_waiting(record, known, QueuedGoal(pool=pool, seq=seq))
        _count(record, pool)

    async def _offer_to_the_best(self, record: GoalRecord, known: OpenGroup) -> None:
        """Queue the goal for the pool that fits it best, and come back until somebody has opened its group; at last for anybody."""
        goal, offers = record.goal, known.offers
        if offers and await self._leaders.stands(offers):
            raise NotYetError(f"The goal {goal.goal_id} is with {offers[-1].pool}.", retry_after=TAKEN_WITHIN)
        if offers:
            is_there = await self._ports.work.look(offers[-1].seq) is not None
            if not is_there or self._ports.clock.now() >= offers[-1].at + LED_WITHIN:
                _count_put_back(goal.name, offers[-1].pool, kept=is_there)
            await self._ports.work.withdraw(offers[-1].seq)
        pool = await self._leaders.next_pool(goal, offers)
        seq = await self._put(record, pool)
        if not offers:
            _count(record, pool)
        if pool is None:
            await self._note_waiting(record, known, QueuedGoal(pool=None, seq=seq))
            return
        offer = QueuedOffer(pool=pool, seq=seq, at=self._ports.clock.now())
        before = [one for one in offers if one.pool != pool]
        await self._ports.open_groups.put(goal.comm_id, known.model_copy(update={"offers": (*before, offer)}))
        raise NotYetError(f"The goal {goal.goal_id} was offered to {pool}.", retry_after=TAKEN_WITHIN)

    async def _put(self, record: GoalRecord, pool: PoolId | None) -> int:
        if pool is not None:
            await self._ports.work.ensure_pool(pool)
        if self._shares is not None:
            await self._shares.take(record.goal.name.owner, pool, record.goal.comm_id)
        return await self._ports.work.put(record, pool, await self._ports.tickets.of(record.goal.name))

    async def _note_waiting(self, record: GoalRecord, known: OpenGroup, queued: QueuedGoal) -> None:
        """Note that nothing is left to do but to see a goal led and ended: its order comes back where users are known."""
        if self._shares is not None:
            waiting = known.model_copy(update={"waits": True, "queued": queued})
            await self._ports.open_groups.put(record.goal.comm_id, waiting)


def _count_put_back(goal: GoalName, pool: PoolId | None, *, kept: bool) -> None:
    """Count a goal that an agent of a pool, or of any, took without leading it, or kept for minutes."""
    put_back.inc()
    _log.warning("goal_kept" if kept else "goal_dropped", pool=pool, goal_id=goal.goal_id, user=goal.user)


def _count(record: GoalRecord, pool: PoolId | None) -> None:
    accepted.inc()
    _log.info("goal_accepted", pool=pool, content=record.goal.goal)
