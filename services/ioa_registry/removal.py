"""Removal of agents that are offline for long, or that an operator names."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from ioa.adapters.nats.stores.agent_removal import NatsAgentRemoval
from ioa.adapters.nats.stores.records import Records
from ioa.errors import ConflictError, NotFoundError, reason_of
from ioa.ports.clock import Clock
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import Acknowledged, RemoveAgent
from ioa.protocol.registry_records import CardRecord

EVERY = timedelta(hours=1)

_log = structlog.get_logger(__name__)


class AgentRemover:
    """Removes agents. Any number of replicas can run it."""

    def __init__(self, cards: Records[CardRecord], view: RegistryView, removal: NatsAgentRemoval, clock: Clock) -> None:
        self._cards = cards
        self._view = view
        self._removal = removal
        self._clock = clock

    async def remove(self, request: RemoveAgent) -> Acknowledged:
        """Remove one agent.

        Raises:
            NotFoundError: There is no such agent.
            ConflictError: It is online, and `force` is not set.
        """
        record = await self._cards.find(request.agent_id)
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
            seen = await self._removal.last_renewal(agent_id)
            if seen is not None and seen + keep < self._clock.now():
                await self._forget(record)

    async def _forget(self, record: CardRecord) -> None:
        agent_id, pool = record.card.agent_id, record.card.pool
        await self._removal.remove_agent(agent_id)
        is_last = not self._is_of(pool, agent_id)
        queue_is_gone = is_last and await self._removal.remove_queue(pool)
        _log.info("agent_removed", agent_id=agent_id, pool=pool, queue_removed=queue_is_gone)

    def _is_of(self, pool: PoolId, but: AgentId) -> bool:
        return any(other.card.agent_id != but for other in self._view.of_pool(pool))
