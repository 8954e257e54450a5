"""Cards, leases and memberships in dictionaries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from ioa.ports.clock import Clock
from ioa.ports.registry_store import CardRecord
from ioa.protocol.ids import AgentId, CommId
from ioa.protocol.load import IDLE, Load


class MemoryCards:
    """A `CardStore` for unit tests. False in this: it is lost with the process."""

    def __init__(self) -> None:
        self.records: dict[AgentId, CardRecord] = {}

    async def put(self, record: CardRecord) -> None:
        """Store or replace a card."""
        self.records[record.card.agent_id] = record

    async def get(self, agent_id: AgentId) -> CardRecord | None:
        """Read a card."""
        return self.records.get(agent_id)


class MemoryLeases:
    """A `LeaseStore` for unit tests. False in this: a lease runs out by the clock it was given, and nobody is told."""

    def __init__(self, clock: Clock, duration: timedelta) -> None:
        self._clock = clock
        self._duration = duration
        self._until: dict[AgentId, datetime] = {}
        self._loads: dict[AgentId, Load] = {}

    async def renew(self, agent_id: AgentId, load: Load = IDLE) -> None:
        """Take or keep the lease, and tell how busy the agent is."""
        self._until[agent_id] = self._clock.now() + self._duration
        self._loads[agent_id] = load

    async def release(self, agent_id: AgentId) -> None:
        """Give the lease back."""
        self._until.pop(agent_id, None)

    def stands(self, agent_id: AgentId) -> bool:
        """Whether an agent's lease has not run out."""
        until = self._until.get(agent_id)
        return until is not None and self._clock.now() < until

    def load(self, agent_id: AgentId) -> Load:
        """What was told with the lease that stands."""
        return self._loads[agent_id] if self.stands(agent_id) else IDLE


class MemoryRegistryView:
    """A `RegistryView` for unit tests. False in this: it is never behind the stores it looks at."""

    def __init__(self, cards: MemoryCards, leases: MemoryLeases) -> None:
        self._cards = cards
        self._leases = leases

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """The card of an agent."""
        return self._cards.records.get(agent_id)

    def cards(self) -> Sequence[CardRecord]:
        """All cards, by id."""
        return [record for _, record in sorted(self._cards.records.items())]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands."""
        return self._leases.stands(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """How busy the agent is."""
        return self._leases.load(agent_id)


class MemoryMemberships:
    """`Memberships` and `MembershipChanges` for unit tests. False in this: the view is never behind the record."""

    def __init__(self) -> None:
        self._groups: dict[AgentId, set[CommId]] = defaultdict(set)

    async def add(self, agent_ids: Sequence[AgentId], comm_id: CommId) -> None:
        """Put agents into a group."""
        for agent_id in agent_ids:
            self._groups[agent_id].add(comm_id)

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Forget a membership."""
        self._groups[agent_id].discard(comm_id)

    def groups_of(self, agent_id: AgentId) -> Sequence[CommId]:
        """The open groups of an agent."""
        return sorted(self._groups[agent_id])

    def agents(self) -> Sequence[AgentId]:
        """Every agent with an open group."""
        return sorted(agent_id for agent_id, groups in self._groups.items() if groups)

    def comm_ids(self) -> Sequence[CommId]:
        """Every open group."""
        return sorted({comm_id for groups in self._groups.values() for comm_id in groups})
