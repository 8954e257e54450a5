"""Changes of the registry, as batches of events for the indexer.

The feed returns the present state of each changed agent, not its history, so a slow indexer has at most one round of work per
agent. The agent that changed last comes first, so that it is found at once while a hundred thousand others wait; half of each
batch are the agents that wait longest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import islice

from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import AgentId
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, RegistryEvent

BATCH_AGENTS = 16


class RegistryFeed:
    """Collect changed agents, and return their present state.

    Args:
        view: The registry's content.
    """

    def __init__(self, view: RegistryView) -> None:
        self._view = view
        self._changed: dict[AgentId, None] = {}
        self._any = asyncio.Event()
        self._moved: dict[AgentId, None] = {}
        self._any_moved = asyncio.Event()

    def touch(self, agent_id: AgentId) -> None:
        """Put a changed agent before the waiting agents."""
        self._changed.pop(agent_id, None)
        self._changed[agent_id] = None
        self._any.set()
        self._moved[agent_id] = None
        self._any_moved.set()

    def review(self, held: Iterable[AgentId]) -> None:
        """Add all agents of the registry and of the index, after the changed agents."""
        every = dict.fromkeys([*held, *(record.card.agent_id for record in self._view.cards())])
        for agent_id in self._changed:
            every.pop(agent_id, None)
        self._changed = {**every, **self._changed}
        self._any.set()

    @property
    def waiting(self) -> int:
        """Number of agents whose change is not indexed."""
        return len(self._changed)

    async def batches(self) -> AsyncIterator[Sequence[RegistryEvent]]:
        """Yield the present state of changed agents until cancelled."""
        while True:
            await self._any.wait()
            yield [event for agent_id in self._take() for event in present(self._view, agent_id)]
            if not self._changed:
                self._any.clear()

    async def moves(self) -> AsyncIterator[Sequence[RegistryEvent]]:
        """Yield the status of changed agents, without their cards, until cancelled.

        `batches` yields it as well, but waits while cards are embedded.
        """
        while True:
            await self._any_moved.wait()
            moved = list(islice(self._moved, BATCH_AGENTS))
            for agent_id in moved:
                del self._moved[agent_id]
            yield [event for agent_id in moved for event in present(self._view, agent_id) if not isinstance(event, CardStored)]
            if not self._moved:
                self._any_moved.clear()
            await asyncio.sleep(0)  # at the start all agents move at once, and most of them change nothing

    def _take(self) -> list[AgentId]:
        taken: list[AgentId] = []
        while self._changed and len(taken) < BATCH_AGENTS:
            agent_id = next(reversed(self._changed)) if len(taken) < BATCH_AGENTS // 2 else next(iter(self._changed))
            del self._changed[agent_id]
            taken.append(agent_id)
        return taken


def present(view: RegistryView, agent_id: AgentId) -> tuple[RegistryEvent, ...]:
    """Return the present state of an agent, as events."""
    record = view.card(agent_id)
    if record is None:
        return (AgentRemoved(agent_id),)
    online = view.is_online(agent_id)
    return CardStored(record.card), AgentOnline(agent_id) if online else AgentOffline(agent_id)
