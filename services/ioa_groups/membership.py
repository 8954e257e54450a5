"""Events of lost and returned members, appended to the logs of their groups.

Every replica appends them; the machine accepts each event once. `ioa.protocol.liveness` decides which agents are lost. A failure
affects one group: it is logged, counted and retried.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog
from prometheus_client import Counter

from ioa.adapters.nats.stores.open_groups import NatsMemberships
from ioa.cancellation import TaskGroup
from ioa.errors import UnavailableError
from ioa.group.events import MemberLost, MemberReturned
from ioa.group.rejection import IllegalEventError
from ioa.ports.clock import Clock
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import AgentId, CommId
from ioa.runtime.ledger import GroupLedger

_CONCURRENT_AGENTS = 16
"""Maximum agents handled concurrently. For each, the last entry and the policy of a group are in memory meanwhile."""
_RETRY_SECONDS = 5.0

_log = structlog.get_logger(__name__)

untold = Counter("ioa_groups_untold_total", "Failed attempts to append lost or returned members to their groups, which are retried")


class MembershipWatch:
    """Record lost and returned members in their groups' logs."""

    def __init__(self, ledger: GroupLedger, registry: RegistryView, memberships: NatsMemberships, clock: Clock) -> None:
        self._ledger = ledger
        self._registry = registry
        self._memberships = memberships
        self._clock = clock
        self._queued: dict[AgentId, None] = {}
        self._busy: set[AgentId] = set()
        self._retries: dict[AgentId, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def notice(self, agent_id: AgentId) -> None:
        """Queue an agent that is lost or has returned."""
        self._queued[agent_id] = None
        self._wake.set()

    async def follow(self) -> None:
        """Check every agent once, and each agent after a change, until cancelled."""
        for record in self._registry.cards():
            self.notice(record.card.agent_id)
        async with TaskGroup() as group:
            for _ in range(_CONCURRENT_AGENTS):
                group.create_task(self._check_queued())

    async def _check_queued(self) -> None:
        """Check queued agents until cancelled. An agent that is being checked stays queued."""
        while True:
            agent_id = next((one for one in self._queued if one not in self._busy), None)
            if agent_id is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            del self._queued[agent_id]
            self._busy.add(agent_id)
            try:
                await self.reconcile(agent_id)
            except Exception as error:  # noqa: BLE001 - logged and retried
                self._schedule_retry(agent_id, error)
            finally:
                self._busy.discard(agent_id)
                self._wake.set()

    def _schedule_retry(self, agent_id: AgentId, error: Exception) -> None:
        asked = error.retry_after if isinstance(error, UnavailableError) else None
        seconds = max(_RETRY_SECONDS, asked.total_seconds() if asked is not None else 0)
        untold.inc()
        _log.warning("membership_retry", agent_id=agent_id, error=str(error) or type(error).__name__, seconds=seconds)
        if (timer := self._retries.get(agent_id)) is not None:
            timer.cancel()  # one pending retry for each agent
        self._retries[agent_id] = asyncio.get_running_loop().call_later(seconds, self.notice, agent_id)

    async def reconcile(self, agent_id: AgentId) -> None:
        """Append to each open group of an agent that it is lost or has returned, unless the log states it.

        Raises:
            UnavailableError: Not every group was updated.
        """
        failures = list[timedelta]()
        for comm_id in await self._memberships.list_groups(agent_id):
            try:
                await self._update(comm_id, agent_id)
            except UnavailableError as error:
                failures.append(error.retry_after or timedelta(0))
                _log.debug("membership_not_recorded", comm_id=comm_id, agent_id=agent_id, error=error.message)
            except Exception:  # noqa: BLE001 - a bug in one group must not stop the update of others
                failures.append(timedelta(0))
                _log.exception("membership_not_recorded", comm_id=comm_id, agent_id=agent_id)
        if failures:
            raise UnavailableError(f"{len(failures)} groups of {agent_id} could not be updated.", retry_after=max(failures))

    async def _update(self, comm_id: CommId, agent_id: AgentId) -> None:
        """Append the agent's present state to one group, if it differs from the log. A silent agent that is not lost is skipped.

        Raises:
            UnavailableError: The log does not answer.
        """
        is_online = self._registry.is_online(agent_id)
        if not is_online and not self._registry.is_lost(agent_id):
            return
        head = await self._ledger.head(comm_id)
        if head is None or (agent_id in head.entry.state.living()) is is_online:
            return  # without reading the policy of the group, which may have 100 kB
        kind = MemberReturned if is_online else MemberLost
        try:
            await self._ledger.record(comm_id, kind(at=self._clock.now(), agent_id=agent_id))
        except IllegalEventError as refusal:
            _log.debug("membership_unchanged", comm_id=comm_id, agent_id=agent_id, code=refusal.code)
