"""Choice of the pool that leads a goal without an addressee, by the goal and the role of the agents.

A goal whose parts fit different pools needs a coordinator: an agent with `leads` in its card, or with the tag `coordinator`. Any
other goal is led by the pool that fits best.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import structlog

from ioa.protocol.agents.search import MAX_NEEDS, Hit
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import PoolId

ASKED = 10
"""Number of hits of a search for a leader."""

_PARTS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+\s*(?:[-*+]|\d+[.)])?\s*")
"""Boundaries of the parts of a goal: ends of sentences, and list items."""
_COORDINATOR = "coordinator"
_NEAR = 0.10
"""Maximum difference of the similarity of a coordinator to the best, for a goal with one part."""

_log = structlog.get_logger(__name__)


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
