"""Offers of accepted goals: to the addressee, or to the pool that fits best, until an agent leads the goal.

The deadline of a goal is armed before its first offer, so the goal ends even if no agent leads it.

A goal is offered to one pool at a time. If no agent of the pool takes it, the next best pool gets the offer, and after two offers
any agent may take the goal. An offer is valid while an agent that took it may still launch the group, at most five minutes, so that
no second group is formed. If two agents form a group, the first launch wins and the other agent finds that group. An agent that
removes an offer from the queue without a launch ends the offer.

An operator may name the pools that lead such goals. Then only these pools get offers. After two offers, the goal stays with a pool
that has online agents, and keeps its position in the queue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Literal

import structlog

from ioa.errors import NotYetError, UnavailableError
from ioa.group.rejection import IllegalEventError
from ioa.protocol.agents.search import MAX_NEED_CHARS, Need, Search
from ioa.protocol.goals import PROBE, Goal, GoalRecord, Reason
from ioa.protocol.ids import AgentId, GoalName, PoolId
from ioa.protocol.setup.open_groups import OpenGroup, QueuedOffer
from ioa.protocol.texts import shortened
from ioa.runtime.recorded import accepted
from ioa.telemetry import log_context
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.leaders import ASKED, best_leader, split_goal
from ioa_groups.shares import PoolShares

_INTAKE = AgentId("intake")
MOST_OFFERS = 2
"""Maximum number of pools that get an offer before any agent may take the goal."""
LED_WITHIN = timedelta(minutes=5)
"""Maximum time from taking a goal to launching its group. After it, the goal is offered again; the first launch wins."""
TAKEN_WITHIN = timedelta(seconds=5)
"""Time after which an offer that no agent took expires, and interval of checks of an offer that an agent took."""
_REGISTERED_WITHIN, _LOOK_AGAIN = timedelta(seconds=10), timedelta(seconds=1)
"""Time in which agents register again after the store of the registry was lost, and time between two checks."""

_log = structlog.get_logger(__name__)


class Offering:
    """Offer goals to agents.

    Args:
        ports: Stores and services.
        only: Pools that may lead a goal without an addressee; the first one gets goals while no pool has online agents. Empty: any.
        shares: Limits the goals of a user at a pool; None if all goals belong to one user.
    """

    def __init__(self, ports: GroupServicePorts, only: Sequence[PoolId], shares: PoolShares | None) -> None:
        self._ports = ports
        self._only = only
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
        if offers and await self._is_valid(offers):
            raise NotYetError(f"The goal {goal.goal_id} is offered to {offers[-1].pool}.", retry_after=TAKEN_WITHIN)
        if offers:
            await self._ports.work.withdraw(offers[-1].seq)
        pool = await self._next_pool(goal, offers)
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

    async def _next_pool(self, goal: Goal, offers: Sequence[QueuedOffer]) -> PoolId | None:
        """Choose the pool for the next offer; None if any agent may take the goal, which needs an empty `only`.

        If discovery does not answer in time, any agent may take the goal.
        """
        offered = [offer.pool for offer in offers]
        pool = await self._best_pool(goal, offered) if len(offers) < MOST_OFFERS else None
        if pool is not None or not self._only:
            return pool
        online = [pool for pool in self._only if self._has_online(pool)]
        if not online:
            return offered[-1] if offered and offered[-1] in self._only else self._only[0]
        return min(online, key=lambda pool: offered.index(pool) if pool in offered else -1)

    async def _is_valid(self, offers: Sequence[QueuedOffer]) -> bool:
        """Return whether the last offer is valid: an agent may still launch the group, or no other pool may get an offer."""
        offer = offers[-1]
        others = [pool for pool in self._only if pool != offer.pool and self._has_online(pool)]
        is_last = offer.pool in self._only and (len(offers) >= MOST_OFFERS or not others)
        if not self._has_online(offer.pool) and (others or not is_last):
            return False
        if not await self._ports.work.contains(offer.seq):  # the leader removes it from the queue after the launch
            return False
        age = self._ports.clock.now() - offer.at
        if age < TAKEN_WITHIN:
            return True
        return age < LED_WITHIN if await self._ports.work.was_taken(offer.pool, offer.seq) else is_last

    async def _best_pool(self, goal: Goal, offered: Collection[PoolId]) -> PoolId | None:
        needs = tuple(Need(text=shortened(text, MAX_NEED_CHARS), k=ASKED) for text in split_goal(goal.goal))
        try:
            found = await self._ports.leading.search(Search(needs=needs, purpose=goal.goal_id))
        except UnavailableError as error:
            _log.info("discovery_unavailable", goal_id=goal.goal_id, user=goal.name.user, error=error.message)
            return None
        by_need = [one.hits for one in found.by_need]
        several = len({hits[0].card.pool for hits in by_need[1:] if hits}) > 1
        hits = [hit for one in by_need[: None if several else 1] for hit in one]
        may_lead = [hit for hit in hits if not self._only or hit.card.pool in self._only]
        return best_leader(may_lead, offered, several=several)

    def _has_online(self, pool: PoolId) -> bool:
        registry = self._ports.registry
        return any(one.card.leads is not False and registry.is_online(one.card.agent_id) for one in registry.of_pool(pool))

    async def _queue(self, record: GoalRecord, pool: PoolId | None) -> int:
        if pool is not None:
            await self._ports.work.ensure_pool(pool)
        if self._shares is not None:
            await self._shares.take(record.goal.name.user, pool, record.goal.comm_id)
        return await self._ports.work.put(record, pool, await self._ports.tickets.of(record.goal.name))

    async def _note_waiting(self, record: GoalRecord, known: OpenGroup) -> None:
        """Note that a goal needs no further offer, for the next delivery of its message."""
        if self._shares is not None:
            waiting = known.model_copy(update={"waits": True})
            await self._ports.open_groups.put(record.goal.user, record.goal.comm_id, waiting)


def _count(record: GoalRecord, pool: PoolId | None) -> None:
    accepted.inc()
    _log.info("goal_accepted", pool=pool, content=record.goal.goal)
