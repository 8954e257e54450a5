"""Goals that a test leads by itself: it needs what whoever leads a goal is given with it."""

from __future__ import annotations

from ioa.errors import NotFoundError
from ioa.ports.agent_network import GoalOffer
from ioa.protocol.ids import GoalId


class GivenGoals:
    """A `GoalLeader` that keeps what it is offered and leaves the rest to the test."""

    def __init__(self) -> None:
        self._offers: dict[GoalId, GoalOffer] = {}

    async def lead(self, offer: GoalOffer) -> None:
        """Keep the offer."""
        self._offers[offer.goal.goal_id] = offer

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """Do nothing: leading never fails."""

    def ticket_of(self, goal_id: GoalId) -> str | None:
        """Return the ticket that a goal was given with.

        Raises:
            NotFoundError: It was not given yet.
        """
        offer = self._offers.get(goal_id)
        if offer is None:
            raise NotFoundError(f"The goal {goal_id} was given to nobody yet.")
        return offer.ticket
