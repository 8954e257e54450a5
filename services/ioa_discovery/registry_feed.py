"""What has changed in the registry, as batches of events for the indexer.

The feed hands on the present state of each agent that was touched, not the history of it: however far the indexer lags, it has
at most one round of work per agent before it is current. Who was touched last comes first, so that an agent that registers while
a hundred thousand wait is found at once; half of each batch are those that wait longest, so that nobody waits for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from ioa.ports.registry_store import RegistryView
from ioa.protocol.ids import AgentId
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, RegistryEvent

BATCH_AGENTS = 16


class RegistryFeed:
    """Collect the agents that were touched, and tell what they are now."""

    def __init__(self, view: RegistryView) -> None:
        self._view = view
        self._touched: dict[AgentId, None] = {}
        self._any = asyncio.Event()
        self.must_compare = asyncio.Event()
        """Set when the index may hold less than it did."""

    def touch(self, agent_id: AgentId) -> None:
        """Have an agent looked at again, before those that wait."""
        self._touched.pop(agent_id, None)
        self._touched[agent_id] = None
        self._any.set()

    def compare(self) -> None:
        """Have the whole index compared with the registry."""
        self.must_compare.set()

    def review(self, held: Iterable[AgentId]) -> None:
        """Have everybody looked at who is in the registry or was held by the index, after those that were touched by themselves."""
        everybody = dict.fromkeys([*held, *(record.card.agent_id for record in self._view.cards())])
        for agent_id in self._touched:
            everybody.pop(agent_id, None)
        self._touched = {**everybody, **self._touched}
        if self._touched:
            self._any.set()

    @property
    def waiting(self) -> int:
        """How many agents are still to be looked at."""
        return len(self._touched)

    async def batches(self) -> AsyncIterator[Sequence[RegistryEvent]]:
        """Yield what the touched agents are now, for ever."""
        while True:
            await self._any.wait()
            yield [event for agent_id in self._take() for event in present(self._view, agent_id)]
            if not self._touched:
                self._any.clear()

    def _take(self) -> list[AgentId]:
        taken: list[AgentId] = []
        while self._touched and len(taken) < BATCH_AGENTS:
            agent_id = next(reversed(self._touched)) if len(taken) < BATCH_AGENTS // 2 else next(iter(self._touched))
            del self._touched[agent_id]
            taken.append(agent_id)
        return taken


def present(view: RegistryView, agent_id: AgentId) -> tuple[RegistryEvent, ...]:
    """Return what an agent is now, as events."""
    record = view.card(agent_id)
    if record is None:
        return (AgentRemoved(agent_id),)
    online = view.is_online(agent_id)
    return CardStored(record.card), AgentOnline(agent_id) if online else AgentOffline(agent_id)
