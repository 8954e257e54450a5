"""Goals that a test leads by itself: it needs what whoever leads a goal is given with it."""

from __future__ import annotations

from collections.abc import Set

from ioa.errors import NotFoundError
from ioa.ports.agent_network import GoalOffer
from ioa.protocol.ids import LOCAL, GoalId, GoalName, UserId


class GivenGoals:
    """A `GoalLeader` that keeps what it is offered and leaves the rest to the test."""

    def __init__(self) -> None:
        self._offers: dict[GoalName, GoalOffer] = {}

    async def lead(self, offer: GoalOffer) -> None:
        """Keep the offer."""
        self._offers[offer.goal.name] = offer

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """Do nothing: leading never fails."""

    @property
    def names(self) -> Set[GoalName]:
        """The goals that it was given."""
        return self._offers.keys()

    def ticket_of(self, goal_id: GoalId, user: UserId = LOCAL) -> str | None:
        """Return the ticket that a goal was given with.

        Raises:
            NotFoundError: It was not given yet.
        """
        offer = self._offers.get(GoalName(user, goal_id))
        if offer is None:
            raise NotFoundError(f"The goal {goal_id} was given to nobody yet.")
        return offer.ticket
