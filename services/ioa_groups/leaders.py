"""Who is asked to lead a goal that addresses nobody: the agents that fit it best, by discovery.

A goal is offered to one pool at a time. If nobody there takes it, since all are busy or gone, the next best pool gets it, and after
two of them anybody. An offer stands as long as somebody who took it may still be forming a team, five minutes at most, so that no
second one is formed beside it; where two are formed all the same, the first to launch leads, and the other finds the group there.
Who takes an offer off the queue without launching has dropped it: it does not stand any more.

An operator may say which pools lead such goals. Then it is never anybody's: it is offered to those alone, after two offers to one
that is there for as long as that is, so that it keeps its place in the queue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import structlog

from ioa.errors import UnavailableError
from ioa.ports.clock import Clock
from ioa.ports.delivery import WorkQueue
from ioa.ports.discovery import Discovery
from ioa.ports.open_groups import QueuedOffer
from ioa.ports.registry_store import RegistryView
from ioa.protocol.goals import Goal
from ioa.protocol.ids import PoolId
from ioa.protocol.search import MAX_NEED_CHARS, Filters, Hit, Need, Search, SearchResult
from ioa.protocol.texts import shortened

MOST_OFFERS = 2
"""To how many pools a goal is offered before it is anybody's."""
LED_WITHIN = timedelta(minutes=5)
"""How long whoever took a goal has to open its group before it is offered again. Who is slow may still be the first to launch."""
TAKEN_WITHIN = timedelta(seconds=5)
"""How long an offer stands that nobody takes, and how often one is looked at that somebody has taken."""
ANSWERED_WITHIN = timedelta(seconds=1)
"""How long discovery may take to say who fits; a goal does not wait for it."""

ASKED = 10
"""How many hits are looked at."""

_NEAR = 0.10
_FITS = 0.35

_log = structlog.get_logger(__name__)


class Leaders:
    """Choose a goal's next leader, and see what became of an offer.

    Args:
        discovery: Knows who fits.
        work: Knows what was taken.
        registry: Knows who lives.
        clock: Says how long an offer stands.
        only: The pools that may lead, the first of them where nobody is there; any if there are none.
    """

    def __init__(
        self, discovery: Discovery, work: WorkQueue, registry: RegistryView, clock: Clock, only: Sequence[PoolId] = ()
    ) -> None:
        self._work = work
        self._registry = registry
        self._clock = clock
        self._only = tuple(only)
        self._discovery = discovery

    async def next_pool(self, goal: Goal, offers: Sequence[QueuedOffer]) -> PoolId | None:
        """Choose the pool that a goal is offered to after `offers`; None: it is anybody's, and never where some alone may lead.

        If discovery does not answer in time, the goal is anybody's.
        """
        pool = await self._best_pool(goal, offers)
        return self._next_of_those(offers) if pool is None and self._only else pool

    async def _best_pool(self, goal: Goal, offers: Sequence[QueuedOffer]) -> PoolId | None:
        if len(offers) >= MOST_OFFERS:
            return None
        try:
            found = await self._discovery.search(self._asked(goal))
        except UnavailableError as error:
            _log.info("discovery_away", goal_id=goal.goal_id, user=goal.name.owner, error=error.message)
            return None
        hits = [hit for hit in _best_first(found) if not self._only or hit.card.pool in self._only]
        return best_leader(hits, {offer.pool for offer in offers})

    def _next_of_those(self, offers: Sequence[QueuedOffer]) -> PoolId:
        """Choose of those who may lead and are there the one that was asked longest ago; if none is, the last one, or the first."""
        asked = [offer.pool for offer in offers]
        there = [pool for pool in self._only if self._is_there(pool)]
        if not there:
            return asked[-1] if asked and asked[-1] in self._only else self._only[0]
        return min(there, key=lambda pool: asked.index(pool) if pool in asked else -1)

    def _is_there(self, pool: PoolId) -> bool:
        return any(
            one.card.leads is not False and self._registry.is_online(one.card.agent_id) for one in self._registry.of_pool(pool)
        )

    def _asked(self, goal: Goal) -> Search:
        """Ask who fits a goal."""
        need = Need(text=shortened(goal.goal, MAX_NEED_CHARS), k=ASKED)
        needs = [need.model_copy(update={"filters": Filters(pool=pool), "k": 1}) for pool in self._only]
        return Search(needs=tuple(needs) or (need,), purpose=goal.goal_id)

    async def stands(self, offers: Sequence[QueuedOffer]) -> bool:
        """Whether somebody may still open a group for what was offered last, or nobody else may be asked."""
        offer = offers[-1]
        others = [pool for pool in self._only if pool != offer.pool and self._is_there(pool)]
        is_last = offer.pool in self._only and (len(offers) >= MOST_OFFERS or not others)
        if not self._is_there(offer.pool) and (others or not is_last):
            return False
        if await self._work.look(offer.seq) is None:  # whoever leads it takes it off the queue afterwards
            return False
        age = self._clock.now() - offer.at
        if age < TAKEN_WITHIN:
            return True
        was_taken = await self._work.was_taken(offer.pool, offer.seq)
        return age < LED_WITHIN if was_taken else is_last


def _best_first(found: SearchResult) -> Sequence[Hit]:
    """Return the hits of a goal, best first, where those of several pools were asked for one by one as well."""
    if len(found.by_need) == 1:
        return found.by_need[0].hits
    return sorted((hit for one in found.by_need for hit in one.hits), key=lambda hit: -hit.similarity)


def best_leader(hits: Sequence[Hit], but: Collection[PoolId] = ()) -> PoolId | None:
    """Choose among the hits of a goal, best first, the pool that is to lead it; None if there is nobody who leads.

    Coordinators, whose cards say `leads`, go before others that fit hardly better, and lead what nobody fits.
    """
    able = [hit for hit in hits if hit.card.leads is not False and hit.card.pool not in but]
    if not able:
        return None
    best = max(hit.similarity for hit in able)
    least = best - _NEAR if best >= _FITS else -1.0
    coordinators = [hit for hit in able if hit.card.leads and hit.similarity >= least]
    if coordinators:
        return max(coordinators, key=lambda hit: hit.similarity).card.pool
    return able[0].card.pool
