"""What the registry owns: cards, leases and the record of who is in which open group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.load import IDLE, Load
from ioa.protocol.model import Model, Time


class CardRecord(Model):
    """A card as it is kept."""

    card: AgentCard
    registered_at: Time


class CardStore(Protocol):
    """The cards of everybody who ever registered."""

    async def put(self, record: CardRecord) -> None:
        """Store or replace a card."""

    async def get(self, agent_id: AgentId) -> CardRecord | None:
        """Read a card."""


class LeaseStore(Protocol):
    """Leases that run out by themselves unless they are renewed."""

    async def renew(self, agent_id: AgentId, load: Load = IDLE) -> None:
        """Take or keep the lease, and tell how busy the agent is."""

    async def release(self, agent_id: AgentId) -> None:
        """Give the lease back."""


class RegistryView(Protocol):
    """Cards and leases as a live view that follows the buckets by watching them."""

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """The card of an agent."""

    def cards(self) -> Sequence[CardRecord]:
        """All cards, in the order of their ids."""

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands."""

    def load(self, agent_id: AgentId) -> Load:
        """How busy the agent said it was when it last renewed its lease; idle without a lease."""
