"""The control plane in one object: registry, group setup and router over stores in memory. Agents see it as `MemoryNetwork`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from ioa.adapters.system_clock import RandomIds
from ioa.group.events import EncodedEntry
from ioa.group.requests import SequencedEntry
from ioa.ports.agent_network import GoalOffer
from ioa.ports.clock import Clock
from ioa.ports.registry_view import RegistryView
from ioa.protocol.agents.search import Hit, NeedHits, Search, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import AgentId, PoolId
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa_discovery.assessment import Assessor
from ioa_discovery.experience import Experience
from tests.rig.memory_goals import MemoryWorkQueue
from tests.rig.memory_outcomes import MemoryOutcomes
from tests.rig.memory_services import MemoryServices

Push = Callable[[AgentId, SequencedEntry], Sequence[SequencedEntry]]
"""What becomes of one push: what arrives instead of it, such as nothing, or the same twice."""

_LEASE = timedelta(hours=1)


class PushedInboxes:
    """Pushes that go to whoever listens now."""

    def __init__(self) -> None:
        self.push_as: Push = lambda _, entry: [entry]
        self._open: dict[AgentId, list[Callable[[SequencedEntry], None]]] = defaultdict(list)

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Show an entry to every member that listens."""
        for agent_id in audience:
            self.deliver(agent_id, SequencedEntry(seq=seq, previous_seq=previous_seq, entry=entry.entry))

    def deliver(self, agent_id: AgentId, entry: SequencedEntry) -> None:
        """Show an entry to one member."""
        for arriving in self.push_as(agent_id, entry):
            for receive in list(self._open[agent_id]):
                receive(arriving)

    @contextmanager
    def open(self, agent_id: AgentId, receive: Callable[[SequencedEntry], None]) -> Iterator[None]:
        """Open an agent's live view."""
        self._open[agent_id].append(receive)
        try:
            yield
        finally:
            self._open[agent_id].remove(receive)


class OfferedWork(MemoryWorkQueue):
    """A `WorkQueue` that agents take goals from. False in this: what is taken is never redelivered by itself.

    What was taken can be looked at until it is acknowledged: a goal that is gone without a group is taken for a dropped one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._offers: dict[PoolId | None, asyncio.Queue[tuple[int, GoalOffer]]] = defaultdict(asyncio.Queue)

    async def put(self, record: GoalRecord, pool: PoolId | None, ticket: str | None = None) -> int:
        """Offer a goal."""
        seq = await super().put(record, pool, ticket)
        self._offers[pool].put_nowait((seq, GoalOffer(record.goal, record.deadline, 1, ticket)))
        return seq

    def offer_again(self, seq: int, offer: GoalOffer, pool: PoolId | None) -> None:
        """Offer what was taken once more."""
        self._offers[pool].put_nowait((seq, offer))

    async def take(self, pool: PoolId | None) -> tuple[int, GoalOffer]:
        """Wait for a goal of a queue that was not withdrawn, and take it; its number acknowledges it, or offers it again."""
        while True:
            seq, offer = await self._offers[pool].get()
            if seq in self._waiting[pool]:
                self.taken.add(seq)
                return seq, offer

    def acknowledge(self, seq: int, pool: PoolId | None) -> None:
        """Take off the queue what was taken."""
        self._waiting[pool].pop(seq, None)

    def waiting(self, pool: PoolId | None = None) -> Sequence[Goal]:
        """Return the goals that nobody has taken."""
        return [goal for seq, goal in self._waiting[pool].items() if seq not in self.taken]


class OnlineAgents:
    """A `Discovery` that finds all agents that are online, the most similar first.

    Attributes:
        similarity: The similarity of a card to a need.
    """

    def __init__(self, view: RegistryView) -> None:
        self._view = view
        self.similarity: Callable[[str, AgentCard], float] = lambda need, card: 0.9

    async def search(self, search: Search) -> SearchResult:
        """Find all agents for each need."""
        online = [record.card for record in self._view.cards() if self._view.is_online(record.card.agent_id)]
        by_need = []
        for need in search.needs:
            scores = [(self.similarity(need.text, card), card) for card in online]
            hits = [Hit(card=card, score=score, similarity=score) for score, card in scores]
            by_need.append(NeedHits(need=need, hits=tuple(sorted(hits, key=lambda hit: -hit.similarity))))
        return SearchResult(by_need=tuple(by_need))


class MemoryControlPlane(MemoryServices[OnlineAgents]):
    """Registry, group setup and router of a system whose agents take goals.

    Args:
        clock: Decides when leases, floors and pauses run out.
        renew_every: How often agents renew their leases.
        task_lease: How long a task may go without a report.
        model_patience: How long the models of all members of a group may be away.
    """

    def __init__(
        self, clock: Clock, *, renew_every: timedelta, task_lease: timedelta, model_patience: timedelta = timedelta(minutes=5)
    ) -> None:
        self.clock = clock
        self.inboxes, self.work, self.outcomes = PushedInboxes(), OfferedWork(), MemoryOutcomes()
        settings = ControlPlaneSettings(lease=_LEASE, renew_every=renew_every, task_lease=task_lease, model_patience=model_patience)
        super().__init__(
            clock,
            RandomIds(),
            settings,
            inboxes=self.inboxes,
            work=self.work,
            discovery=OnlineAgents,
        )
        self.assessor = Assessor(self.log, self.view, self.outcomes, self.sessions, Experience(clock))

    async def fire_due(self) -> None:
        """Have the router look at every deadline that has come."""
        for comm_id in self.timers.take_due():
            await self.routers[0].fire_timer(comm_id)
