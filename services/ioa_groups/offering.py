"""Offers of accepted goals: to the addressee, or to the pool that fits best, until an agent leads the goal.

The deadline of a goal is armed before its first offer, so the goal ends even if no agent leads it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import structlog

from ioa.errors import NotYetError
from ioa.group.rejection import IllegalEventError
from ioa.protocol.goals import GoalRecord, Reason
from ioa.protocol.ids import AgentId, GoalName, PoolId
from ioa.protocol.labels import PROBE
from ioa.protocol.open_groups import OpenGroup, QueuedOffer
from ioa.runtime.recorded import accepted
from ioa.telemetry import log_context
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.leaders import TAKEN_WITHIN, Leaders
from ioa_groups.shares import PoolShares

_INTAKE = AgentId("intake")
_REGISTERED_WITHIN, _LOOK_AGAIN = timedelta(seconds=10), timedelta(seconds=1)
"""Time in which agents register again after the store of the registry was lost, and time between two checks."""

_log = structlog.get_logger(__name__)


class Offering:
    """Offer goals to agents.

    Args:
        ports: Stores and services.
        leaders: Chooses the pool for a goal without an addressee.
        shares: Limits the goals of a user at a pool; None if all goals belong to one user.
    """

    def __init__(self, ports: GroupServicePorts, leaders: Leaders, shares: PoolShares | None) -> None:
        self._ports = ports
        self._leaders = leaders
        self._shares = shares

    async def offer(self, record: GoalRecord) -> None:
        """Arm the deadline of a goal, and queue the goal unless it has ended, has a group, or is a probe, which only ends.

        Raises:
            NotYetError: The offer has to be checked later.
        """
        goal = record.goal
        comm_id = goal.comm_id
        log_context.bind({"goal_id": goal.goal_id, "comm_id": comm_id, "traceparent": goal.traceparent})
        await self._ports.timers.schedule(comm_id, record.deadline)
        known = await self._ports.open_groups.find(comm_id)
        head = await self._ports.ledger.head(comm_id)  # read after the index, so that a group that opens meanwhile is found
        if head is not None or await self._ports.results.ending(goal.name) is not None:
            if known is not None and known.offers:
                await self.close(goal.name)
            return
        if known is None:
            known = OpenGroup(goal_id=goal.goal_id, deadline=record.deadline)
            await self._ports.open_groups.put(goal.user, comm_id, known)
        if known.waits or PROBE in goal.labels:
            return
        if goal.agent is not None:
            await self._offer_to(goal.agent, record, known)
        else:
            await self._offer_to_the_best(record, known)

    async def close(self, goal: GoalName) -> None:
        """Remove a goal from the open index if its group has ended: the entry may have been written after the end."""
        head = await self._ports.ledger.head(goal.comm_id)
        if head is not None and head.entry.state.phase.is_terminal:
            await self._ports.ledger.settle(head.entry.state)

    async def end(self, goal: GoalName, reason: Literal[Reason.NO_AGENT, Reason.FAILED], why: str) -> None:
        """End a goal without a group. A goal that has ended keeps its end."""
        try:
            await self._ports.ledger.abandon(goal, _INTAKE, reason, why)
        except IllegalEventError:
            _log.debug("goal_ended_already", goal_id=goal.goal_id)

    async def _offer_to(self, addressee: AgentId, record: GoalRecord, known: OpenGroup) -> None:
        """Queue a goal for its addressee, an agent or a pool. If neither has ever registered, the goal ends."""
        agent, pool = self._ports.registry.card(addressee), PoolId(addressee)
        if agent is None and not self._ports.registry.of_pool(pool):
            if self._ports.clock.now() < record.accepted_at + _REGISTERED_WITHIN:
                raise NotYetError(f"No agent or pool {addressee} is registered.", retry_after=_LOOK_AGAIN)
            why = f"No agent or pool {addressee!r} has ever registered; `ioa agents` lists the registered agents."
            await self.end(record.goal.name, Reason.NO_AGENT, why)
            return
        pool = pool if agent is None else agent.card.pool
        await self._queue(record, pool)
        await self._note_waiting(record, known)
        _count(record, pool)

    async def _offer_to_the_best(self, record: GoalRecord, known: OpenGroup) -> None:
        """Offer a goal to the next pool that fits it; after the last pool, to all agents."""
        goal, offers = record.goal, known.offers
        if offers and await self._leaders.is_valid(offers):
            raise NotYetError(f"The goal {goal.goal_id} is offered to {offers[-1].pool}.", retry_after=TAKEN_WITHIN)
        if offers:
            await self._ports.work.withdraw(offers[-1].seq)
        pool = await self._leaders.next_pool(goal, offers)
        seq = await self._queue(record, pool)
        if not offers:
            _count(record, pool)
        if pool is None:
            await self._note_waiting(record, known)
            return
        offer = QueuedOffer(pool=pool, seq=seq, at=self._ports.clock.now())
        before = [one for one in offers if one.pool != pool]
        await self._ports.open_groups.put(goal.user, goal.comm_id, known.model_copy(update={"offers": (*before, offer)}))
        raise NotYetError(f"The goal {goal.goal_id} was offered to {pool}.", retry_after=TAKEN_WITHIN)

    async def _queue(self, record: GoalRecord, pool: PoolId | None) -> int:
        if pool is not None:
            await self._ports.work.ensure_pool(pool)
        if self._shares is not None:
            await self._shares.take(record.goal.name.owner, pool, record.goal.comm_id)
        return await self._ports.work.put(record, pool, await self._ports.tickets.of(record.goal.name))

    async def _note_waiting(self, record: GoalRecord, known: OpenGroup) -> None:
        """Note that a goal needs no further offer, for the next delivery of its message."""
        if self._shares is not None:
            waiting = known.model_copy(update={"waits": True})
            await self._ports.open_groups.put(record.goal.user, record.goal.comm_id, waiting)


def _count(record: GoalRecord, pool: PoolId | None) -> None:
    accepted.inc()
    _log.info("goal_accepted", pool=pool, content=record.goal.goal)
