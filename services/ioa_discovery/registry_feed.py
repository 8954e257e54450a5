"""What has changed in the registry, as events for the indexer.

The feed hands on the present state of each agent that was touched, not the history of it: however far the indexer lags, it has
at most one round of work per agent before it is current.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ioa.ports.registry_store import RegistryView
from ioa.protocol.ids import AgentId
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, RegistryEvent


class RegistryFeed:
    """Collect the agents that were touched, and tell what they are now."""

    def __init__(self, view: RegistryView) -> None:
        self._view = view
        self._touched: dict[AgentId, None] = {}
        self._any = asyncio.Event()

    def touch(self, agent_id: AgentId) -> None:
        """Have an agent looked at again."""
        self._touched[agent_id] = None
        self._any.set()

    async def events(self) -> AsyncIterator[RegistryEvent]:
        """Yield what the touched agents are now, for ever."""
        while True:
            await self._any.wait()
            touched, self._touched = self._touched, {}
            self._any.clear()
            for agent_id in touched:
                for event in self._present(agent_id):
                    yield event

    def _present(self, agent_id: AgentId) -> tuple[RegistryEvent, ...]:
        record = self._view.card(agent_id)
        if record is None:
            return (AgentRemoved(agent_id),)
        online = self._view.is_online(agent_id)
        return CardStored(record.card), AgentOnline(agent_id) if online else AgentOffline(agent_id)
