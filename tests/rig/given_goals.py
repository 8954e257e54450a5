"""Goals that a test leads by itself, with their launch tickets."""

from __future__ import annotations

from collections.abc import Set

from ioa.errors import NotFoundError
from ioa.ports.agent_network import GoalOffer
from ioa.protocol.ids import LOCAL, GoalId, GoalName, UserId


class GivenGoals:
    """A `GoalLeader` that stores its offers for the test."""

    def __init__(self) -> None:
        self._offers: dict[GoalName, GoalOffer] = {}

    async def lead(self, offer: GoalOffer) -> None:
        """Store the offer."""
        self._offers[offer.goal.name] = offer

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """Do nothing."""

    @property
    def names(self) -> Set[GoalName]:
        """The offered goals."""
        return self._offers.keys()

    def ticket_of(self, goal_id: GoalId, user: UserId = LOCAL) -> str | None:
        """Return the launch ticket of a goal.

        Raises:
            NotFoundError: The goal was not offered yet.
        """
        offer = self._offers.get(GoalName(user, goal_id))
        if offer is None:
            raise NotFoundError(f"The goal {goal_id} was not offered yet.")
        return offer.ticket
