"""Events of lost and returned members, appended to the logs of their groups.

Every replica appends them; the machine accepts each event once. `ioa.protocol.agents.lease_expiry` decides which agents are lost. A
failure affects one group: it is logged, counted and retried.
"""

from __future__ import annotations

import asyncio

import structlog

from ioa.concurrency import TaskGroup
from ioa.errors import UnavailableError, reason_of
from ioa.group.events import MemberLost, MemberReturned
from ioa.group.rejection import IllegalEventError
from ioa.protocol.ids import AgentId, CommId
from ioa_groups.group_ports import GroupServicePorts

_CONCURRENT_AGENTS = 16
"""Maximum agents handled concurrently. For each, the last entry and the policy of a group are in memory meanwhile."""
_RETRY_SECONDS = 5.0

_log = structlog.get_logger(__name__)


class MembershipWatch:
    """Record lost and returned members in their groups' logs."""

    def __init__(self, ports: GroupServicePorts) -> None:
        self._ports = ports
        self._due, self._running = set[AgentId](), set[AgentId]()
        """Agents to check, and agents with a task, which checks them until they are not due."""
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(_CONCURRENT_AGENTS)

    def notice(self, agent_id: AgentId) -> None:
        """Check an agent that may be lost or have returned."""
        self._due.add(agent_id)
        self._wake.set()

    async def follow(self) -> None:
        """Check every agent once, and each agent after a change, until cancelled."""
        self._due.update(record.card.agent_id for record in self._ports.registry.cards())
        async with TaskGroup() as group:
            while True:
                for agent_id in self._due - self._running:
                    self._running.add(agent_id)
                    group.create_task(self._check(agent_id))
                self._wake.clear()
                await self._wake.wait()

    async def _check(self, agent_id: AgentId) -> None:
        while agent_id in self._due:
            async with self._slots:
                self._due.discard(agent_id)
                try:
                    await self.reconcile(agent_id)
                    continue
                except UnavailableError as error:
                    self._due.add(agent_id)
                    _log.warning("membership_retry", agent_id=agent_id, error=error.message)
            await asyncio.sleep(_RETRY_SECONDS)
        self._running.discard(agent_id)

    async def reconcile(self, agent_id: AgentId) -> None:
        """Append to each open group of an agent that it is lost or has returned, unless the log states it.

        Raises:
            UnavailableError: Not every group was updated.
        """
        failed = 0
        for comm_id in await self._ports.memberships.list_groups(agent_id):
            try:
                await self._update(comm_id, agent_id)
            except Exception as error:  # noqa: BLE001 - a failure in one group must not stop the update of others
                failed += 1
                bug = None if isinstance(error, UnavailableError) else error
                _log.warning("membership_not_recorded", comm_id=comm_id, agent_id=agent_id, error=reason_of(error), exc_info=bug)
        if failed:
            raise UnavailableError(f"{failed} groups of {agent_id} could not be updated.")

    async def _update(self, comm_id: CommId, agent_id: AgentId) -> None:
        """Append that an agent is lost or has returned, unless the log states it. A silent agent that is not lost is skipped."""
        registry = self._ports.registry
        is_online = registry.is_online(agent_id)
        if not is_online and not registry.is_lost(agent_id):
            return
        head = await self._ports.ledger.head(comm_id)
        if head is None or (agent_id in head.entry.state.living()) is is_online:
            return  # without reading the policy of the group, which may have 100 kB
        kind = MemberReturned if is_online else MemberLost
        try:
            await self._ports.ledger.record(comm_id, kind(at=self._ports.clock.now(), agent_id=agent_id))
        except IllegalEventError as refusal:
            _log.debug("membership_unchanged", comm_id=comm_id, agent_id=agent_id, code=refusal.code)
