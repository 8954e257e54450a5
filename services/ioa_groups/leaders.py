"""Choice of the pool that leads a goal without an addressee, by the goal and the role of the agents.

A goal whose parts fit different pools needs a coordinator: an agent with `leads` in its card, or with the tag `coordinator`. Any
other goal is led by the pool that fits best.

A goal is offered to one pool at a time. If no agent of the pool takes it, the next best pool gets the offer, and after two offers
any agent may take the goal. An offer is valid while an agent that took it may still launch the group, at most five minutes, so that
no second group is formed. If two agents form a group, the first launch wins and the other agent finds that group. An agent that
removes an offer from the queue without a launch ends the offer.

An operator may name the pools that lead such goals. Then only these pools get offers. After two offers, the goal stays with a pool
that has online agents, and keeps its position in the queue.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import timedelta

import structlog

from ioa.errors import UnavailableError
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Goal
from ioa.protocol.ids import PoolId
from ioa.protocol.open_groups import QueuedOffer
from ioa.protocol.search import MAX_NEED_CHARS, MAX_NEEDS, Filters, Hit, Need, Search
from ioa.protocol.texts import shortened
from ioa_groups.group_ports import GroupServicePorts

MOST_OFFERS = 2
"""Maximum number of pools that get an offer before any agent may take the goal."""
LED_WITHIN = timedelta(minutes=5)
"""Maximum time from taking a goal to launching its group. After it, the goal is offered again; the first launch wins."""
TAKEN_WITHIN = timedelta(seconds=5)
"""Time after which an offer that no agent took expires, and interval of checks of an offer that an agent took."""
ASKED = 10
"""Number of hits of a search for a leader."""

_PARTS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+\s*(?:[-*+]|\d+[.)])?\s*")
"""Boundaries of the parts of a goal: ends of sentences, and list items."""
_COORDINATOR = "coordinator"
_NEAR = 0.10
"""Maximum difference of the similarity of a coordinator to the best, for a goal with one part."""

_log = structlog.get_logger(__name__)


class Leaders:
    """Choose the next pool for a goal, and check offers.

    Args:
        ports: Stores and services.
        only: Pools that may lead; the first one gets goals while no pool has online agents. Empty: any pool.
    """

    def __init__(self, ports: GroupServicePorts, only: Sequence[PoolId] = ()) -> None:
        self._ports = ports
        self._registry = ports.registry
        self._only = tuple(only)

    async def next_pool(self, goal: Goal, offers: Sequence[QueuedOffer]) -> PoolId | None:
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

    async def is_valid(self, offers: Sequence[QueuedOffer]) -> bool:
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
        if self._only:
            need = Need(text=shortened(goal.goal, MAX_NEED_CHARS), k=1)
            needs = tuple(need.model_copy(update={"filters": Filters(pool=pool)}) for pool in self._only)
        else:
            needs = tuple(Need(text=shortened(text, MAX_NEED_CHARS), k=ASKED) for text in split_goal(goal.goal))
        try:
            found = await self._ports.leading.search(Search(needs=needs, purpose=goal.goal_id))
        except UnavailableError as error:
            _log.info("discovery_unavailable", goal_id=goal.goal_id, user=goal.name.owner, error=error.message)
            return None
        by_need = [one.hits for one in found.by_need]
        if self._only:
            hits = [hit for one in by_need for hit in one if hit.card.pool in self._only]
            return best_leader(sorted(hits, key=lambda hit: -hit.similarity), offered)
        several = len({hits[0].card.pool for hits in by_need[1:] if hits}) > 1
        return best_leader([hit for one in by_need[: None if several else 1] for hit in one], offered, several=several)

    def _has_online(self, pool: PoolId) -> bool:
        return any(
            one.card.leads is not False and self._registry.is_online(one.card.agent_id) for one in self._registry.of_pool(pool)
        )


def split_goal(goal: str) -> list[str]:
    """Return the goal, and its sentences or list items if it has several."""
    parts = [part.strip() for part in _PARTS.split(goal) if part.strip()]
    return [goal, *parts[: MAX_NEEDS - 1]] if len(parts) > 1 else [goal]


def best_leader(hits: Sequence[Hit], but: Collection[PoolId] = (), *, several: bool = False) -> PoolId | None:
    """Choose the pool that leads a goal from its hits, best first; None if no hit may lead.

    Args:
        hits: The agents that fit the goal or a part of it.
        but: Pools that had an offer.
        several: The parts of the goal fit different pools, so a coordinator leads. Otherwise a coordinator precedes other agents
            whose similarity is only slightly higher.
    """
    able = [hit for hit in hits if hit.card.leads is not False and hit.card.pool not in but]
    if not able:
        return None
    least = -1.0 if several else max(hit.similarity for hit in able) - _NEAR
    coordinators = [hit for hit in able if _coordinates(hit.card) and hit.similarity >= least]
    if coordinators:
        return max(coordinators, key=lambda hit: hit.similarity).card.pool
    return able[0].card.pool


def _coordinates(card: AgentCard) -> bool:
    return bool(card.leads) or _COORDINATOR in card.tags
