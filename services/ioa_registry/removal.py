"""Removal of agents that are offline for long, or that an operator names."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.errors import ConflictError, NotFoundError, reason_of
from ioa.protocol.registry import Acknowledged, CardRecord, RemoveAgent
from ioa_registry.agent_registry import RegistryPorts

EVERY = timedelta(hours=1)

_log = structlog.get_logger(__name__)


class AgentRemover:
    """Removes agents. Any number of replicas can run it."""

    def __init__(self, ports: RegistryPorts) -> None:
        self._ports = ports
        self._view = ports.view

    async def remove(self, request: RemoveAgent) -> Acknowledged:
        """Remove one agent.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is online, and `force` is not set.
        """
        record = await self._ports.cards.find(request.agent_id)
        if record is None:
            raise NotFoundError(f"There is no agent {request.agent_id}.", hint="`ioa agents` lists them.")
        if self._view.is_online(request.agent_id) and not request.force:
            raise ConflictError(
                f"{request.agent_id} is online.",
                hint="Stop its process first, or use --force; it comes back if the process goes on.",
            )
        await self._forget(record)
        return Acknowledged()

    async def follow(self, keep: timedelta, every: timedelta = EVERY) -> None:
        """Remove agents that are offline for longer than `keep`, periodically until cancelled."""
        while True:
            try:
                await self.sweep(keep)
            except Exception as error:  # noqa: BLE001 - the sweep goes on after any error
                _log.warning("agents_not_swept", error=reason_of(error))
            await asyncio.sleep(every.total_seconds())

    async def sweep(self, keep: timedelta) -> None:
        """Remove agents that are offline for longer than `keep`. An agent without any lease is kept: its last renewal is unknown.

        Raises:
            UnavailableError: The stores do not answer.
        """
        for record in self._view.cards():
            agent_id = record.card.agent_id
            if self._view.is_online(agent_id):
                continue
            seen = await self._ports.leases.written_at(agent_id)
            if seen is not None and seen + keep < self._ports.clock.now():
                await self._forget(record)

    async def _forget(self, record: CardRecord) -> None:
        """Remove the keys of an agent, and the queue of an empty pool. The card goes last: an interrupted removal is repeated."""
        agent_id, pool = record.card.agent_id, record.card.pool
        for store in (self._ports.leases, self._ports.sessions, self._ports.cards):
            await store.remove(agent_id)
        is_last = all(other.card.agent_id == agent_id for other in self._view.of_pool(pool))
        queue_is_gone = is_last and await self._ports.work.remove_pool(pool)
        _log.info("agent_removed", agent_id=agent_id, pool=pool, queue_removed=queue_is_gone)
