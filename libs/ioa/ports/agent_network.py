"""Goals as they are offered to agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from ioa.protocol.goals import Goal


@dataclass(frozen=True)
class GoalOffer:
    """A goal that an agent may lead until it acknowledges the offer.

    Attributes:
        attempt: Number of this delivery, from 1, over all agents.
        ticket: Authorises the request that opens the goal's group, or that ends the goal without a group.
    """

    goal: Goal
    deadline: datetime
    attempt: int
    ticket: str | None = field(default=None, repr=False)


class GoalLeader(Protocol):
    """Leads offered goals. If a method raises, the goal is offered again."""

    async def lead(self, offer: GoalOffer) -> None:
        """Open the goal's group, or end the goal."""

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """End a goal whose offers failed too often."""
