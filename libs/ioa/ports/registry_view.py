"""The registry as other services see it: cards and leases, followed live."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from ioa.protocol.cards import Load, ModelReport
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import CardRecord


class RegistryView(Protocol):
    """A live view of cards and leases (`ioa.protocol.agents.liveness` judges leases)."""

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """Return the card of an agent."""

    def cards(self) -> Sequence[CardRecord]:
        """All cards, in the order of their ids."""

    def of_pool(self, pool: PoolId) -> Sequence[CardRecord]:
        """Return the cards of a pool, in the order of their ids, from an index."""

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease is valid, so that the agent may be found and launched."""

    def load(self, agent_id: AgentId) -> Load:
        """Return the load in the agent's last renewal; idle without a lease."""

    def model(self, agent_id: AgentId) -> ModelReport | None:
        """Return the state of the model in the agent's last renewal; None without a model or a lease."""

    async def whole(self) -> None:
        """Return when the view contains all that was stored when it was opened."""

    def is_lost(self, agent_id: AgentId) -> bool:
        """Whether the agent was silent for a whole lease while others were heard, so that its groups are informed.

        An agent that deregistered within a lease is neither online nor lost.
        """

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """Time from the agent's last renewal to the last renewal of any agent, by the server's clock; None if there is none."""
