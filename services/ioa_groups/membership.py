"""Telling groups which of their members are lost, and which have returned."""

from __future__ import annotations

import asyncio

import structlog

from ioa.errors import UnavailableError
from ioa.group.events import MemberLost, MemberReturned
from ioa.group.rejection import IllegalEventError
from ioa.ports.clock import Clock
from ioa.ports.delivery import MembershipChanges
from ioa.ports.registry_store import RegistryView
from ioa.protocol.ids import AgentId, CommId
from ioa.runtime.ledger import GroupLedger

_RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class MembershipWatch:
    """Record lost and returned members in their groups' logs. Every replica does it; the machine takes each event once."""

    def __init__(self, ledger: GroupLedger, registry: RegistryView, memberships: MembershipChanges, clock: Clock) -> None:
        self._ledger = ledger
        self._registry = registry
        self._memberships = memberships
        self._clock = clock
        self._changed: asyncio.Queue[AgentId] = asyncio.Queue()

    def notice(self, agent_id: AgentId) -> None:
        """Have an agent looked at whose lease has come or gone."""
        self._changed.put_nowait(agent_id)

    async def follow(self) -> None:
        """Look at everybody once and then at each change, for ever."""
        for agent_id in self._memberships.agents():
            self.notice(agent_id)
        while True:
            agent_id = await self._changed.get()
            try:
                await self.reconcile(agent_id)
            except UnavailableError as error:
                _log.warning("membership_put_off", agent_id=agent_id, error=error.message)
                await asyncio.sleep(_RETRY_SECONDS)
                self.notice(agent_id)

    async def reconcile(self, agent_id: AgentId) -> None:
        """Bring each open group of an agent in line with whether its lease stands."""
        online = self._registry.is_online(agent_id)
        for comm_id in self._memberships.groups_of(agent_id):
            await self._tell(comm_id, agent_id, online=online)

    async def _tell(self, comm_id: CommId, agent_id: AgentId, *, online: bool) -> None:
        kind = MemberReturned if online else MemberLost
        try:
            await self._ledger.record(comm_id, kind(at=self._clock.now(), agent_id=agent_id))
        except IllegalEventError as refusal:
            _log.debug("membership_unchanged", comm_id=comm_id, agent_id=agent_id, code=refusal.code)
