"""Cards, leases and sessions in dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ioa.adapters.nats.stores.records import Records
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.ports.clock import Clock
from ioa.protocol.cards import Load, ModelReport
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import EMPTY_RENEWAL, CardRecord, Claim, Renewal


class MemoryCards(Records[CardRecord]):
    """Cards in a dictionary."""

    def __init__(self) -> None:
        self.records: dict[str, CardRecord] = {}

    async def put(self, key: str, record: CardRecord | None) -> None:
        """Store or replace a card."""
        assert record is not None
        self.records[key] = record

    async def find(self, key: str) -> CardRecord | None:
        """Return a card."""
        return self.records.get(key)

    async def remove(self, key: str) -> None:
        """Remove a card."""
        self.records.pop(key, None)


class MemoryLeases(Records[Renewal]):
    """Leases that expire by a given clock, without a notification."""

    def __init__(self, clock: Clock, duration: timedelta) -> None:
        self._clock = clock
        self._duration = duration
        self._heard: dict[str, datetime] = {}
        self._renewals: dict[str, Renewal] = {}

    async def put(self, key: str, record: Renewal | None) -> None:
        """Renew or end a lease."""
        if record is not None:
            self.hear(AgentId(key), record)
        elif self._renewals.pop(key, None) is not None:
            self._heard[key] = self._clock.now()

    def hear(self, agent_id: AgentId, renewal: Renewal = EMPTY_RENEWAL) -> None:
        """Return the same, where a test cannot wait."""
        self._heard[agent_id] = self._clock.now()
        self._renewals[agent_id] = renewal

    async def written_at(self, key: str) -> datetime | None:
        """When an agent was last heard, also one whose lease has run out."""
        return self._heard.get(key)

    async def remove(self, key: str) -> None:
        """Remove a lease."""
        self.forget(AgentId(key))

    def forget(self, agent_id: AgentId) -> None:
        """Leave nothing of an agent."""
        self._heard.pop(agent_id, None)
        self._renewals.pop(agent_id, None)

    def stands(self, agent_id: AgentId) -> bool:
        """Whether an agent's lease was not given back and has not run out."""
        return agent_id in self._renewals and not self.is_over(agent_id)

    def is_over(self, agent_id: AgentId) -> bool:
        """Whether an agent was not heard for a whole lease."""
        silence = self.silence(agent_id)
        return silence is None or silence >= self._duration

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """How long an agent has not been heard."""
        heard = self._heard.get(agent_id)
        return None if heard is None else self._clock.now() - heard

    def renewal(self, agent_id: AgentId) -> Renewal:
        """Return the last renewal of a valid lease."""
        return self._renewals[agent_id] if self.stands(agent_id) else EMPTY_RENEWAL


class MemorySessions(NatsSessions):
    """A `SessionStore` for unit tests. False in this: its view is never behind, and nobody races."""

    def __init__(self) -> None:
        self._held: dict[AgentId, tuple[Claim | None, int]] = {}
        self._claims = {}
        self._revision = 0

    async def remove(self, agent_id: AgentId) -> None:
        """Remove a claim."""
        self._held.pop(agent_id, None)
        self._claims.pop(agent_id, None)

    async def read(self, agent_id: AgentId) -> tuple[Claim | None, int]:
        """Read who holds an id."""
        return self._held.get(agent_id, (None, 0))

    async def write(self, agent_id: AgentId, claim: Claim | None, *, revision: int) -> bool:
        """Claim or release an id, unless another claim was written after `revision`."""
        if self._held.get(agent_id, (None, 0))[1] != revision:
            return False
        self._revision += 1
        self._held[agent_id] = claim, self._revision
        self._claims.pop(agent_id, None)
        if claim is not None:
            self._claims[agent_id] = claim
        return True


class MemoryRegistryView:
    """A `RegistryView` for unit tests. Unlike the real one, it is always up to date with the stores."""

    def __init__(self, cards: MemoryCards, leases: MemoryLeases) -> None:
        self._cards = cards
        self._leases = leases

    async def whole(self) -> None:
        """Return at once."""

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """Return the card of an agent."""
        return self._cards.records.get(agent_id)

    def cards(self) -> Sequence[CardRecord]:
        """All cards, by id."""
        return [record for _, record in sorted(self._cards.records.items())]

    def of_pool(self, pool: PoolId) -> Sequence[CardRecord]:
        """Return the cards of a pool, by id."""
        return [record for record in self.cards() if record.card.pool == pool]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands."""
        return self._leases.stands(agent_id)

    def is_lost(self, agent_id: AgentId) -> bool:
        """Whether the agent was not heard for a whole lease."""
        return self._leases.is_over(agent_id)

    def silence(self, agent_id: AgentId) -> timedelta | None:
        """How long the agent has not been heard."""
        return self._leases.silence(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """How busy the agent is."""
        return self._leases.renewal(agent_id).load

    def model(self, agent_id: AgentId) -> ModelReport | None:
        """How the agent's model answers."""
        return self._leases.renewal(agent_id).model
