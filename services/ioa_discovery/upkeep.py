"""Keep the index equal to the registry while discovery runs.

At the start, and after the index did not answer, all agents of the registry and of the index are compared: missing, stale and
surplus entries are corrected agent by agent, while searches use the available part.

The agent that changed last comes first, so that it is found at once while thousands of others wait; half of each batch are the
agents that wait longest. The present state of an agent is read, not its history, so its changes cost at most one round of work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta

import structlog
from prometheus_client import Gauge

from ioa.errors import UnavailableError
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import AgentId
from ioa_discovery.indexer import Indexer, RegisteredAgent

BATCH_AGENTS = 16
_RETRY = timedelta(seconds=0.5)

index_agents = Gauge("ioa_discovery_index_agents", "Agents in the index of this replica, online or not")
index_waiting = Gauge("ioa_discovery_index_waiting", "Agents whose last change this replica has not indexed")

_log = structlog.get_logger(__name__)


class Upkeep:
    """Follow a registry with an indexer. Call `touch` for every agent that changed."""

    def __init__(self, indexer: Indexer, view: RegistryView, *, retry: timedelta = _RETRY) -> None:
        self._indexer = indexer
        self._view = view
        self._retry = retry
        self._changed: dict[AgentId, None] = {}
        self._any_changed = asyncio.Event()
        index_agents.set_function(lambda: indexer.cards)
        index_waiting.set_function(lambda: len(self._changed))

    def touch(self, agent_id: AgentId) -> None:
        """Put a changed agent before the waiting agents."""
        self._changed.pop(agent_id, None)
        self._changed[agent_id] = None
        self._any_changed.set()

    async def keep(self) -> None:
        """Index all agents, then the changed agents, until cancelled."""
        while True:
            try:
                self._touch_all(await self._indexer.load())
                while True:
                    await self._any_changed.wait()
                    await self._indexer.apply({agent_id: self._registered(agent_id) for agent_id in self._take()})
                    if not self._changed:
                        self._any_changed.clear()
            except UnavailableError as error:
                _log.warning("index_unavailable", error=str(error))
            await asyncio.sleep(self._retry.total_seconds())

    def _touch_all(self, indexed: Iterable[AgentId]) -> None:
        """Add all agents of the index and of the registry, after the changed agents."""
        every = dict.fromkeys([*indexed, *(record.card.agent_id for record in self._view.cards())])
        for agent_id in self._changed:
            every.pop(agent_id, None)
        self._changed = {**every, **self._changed}
        self._any_changed.set()

    def _take(self) -> list[AgentId]:
        taken: list[AgentId] = []
        while self._changed and len(taken) < BATCH_AGENTS:
            agent_id = next(reversed(self._changed)) if len(taken) < BATCH_AGENTS // 2 else next(iter(self._changed))
            del self._changed[agent_id]
            taken.append(agent_id)
        return taken

    def _registered(self, agent_id: AgentId) -> RegisteredAgent | None:
        record = self._view.card(agent_id)
        return None if record is None else RegisteredAgent(record.card, self._view.is_online(agent_id))
