"""Events of lost and returned members, appended to the logs of their groups.

Every replica appends them; the machine accepts each event once. `ioa.protocol.liveness` decides which agents are lost. A failure
affects one group: it is logged, counted and retried.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
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

_CONCURRENT_AGENTS = _CONCURRENT_GROUPS = 4
"""Maximum agents handled concurrently, and groups of each. The last entry and the policy of each group are in memory meanwhile."""
_RETRY_SECONDS, _MAX_RETRY_SECONDS, _MAX_DOUBLINGS = 1.0, 60.0, 6
_NO_DELAY = timedelta(0)

_log = structlog.get_logger(__name__)

untold = Counter("ioa_groups_untold_total", "Failed attempts to append lost or returned members to their groups, which are retried")


class MembershipWatch:
    """Record lost and returned members in their groups' logs."""

    def __init__(self, ledger: GroupLedger, registry: RegistryView, memberships: NatsMemberships, clock: Clock) -> None:
        self._ledger = ledger
        self._registry = registry
        self._memberships = memberships
        self._clock = clock
        self._noticed: dict[AgentId, None] = {}
        self._review: deque[AgentId] = deque()
        self._busy: set[AgentId] = set()
        self._current: set[AgentId] = set()
        """Agents whose groups have recorded that they are online."""
        self._failures: dict[AgentId, int] = {}
        self._again: dict[AgentId, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def notice(self, agent_id: AgentId) -> None:
        """Queue an agent that is lost or has returned.

        An agent that was silent for a short time and was not lost is ignored: it may leave and return twice a second, and each
        check reads up to a hundred groups.
        """
        if self._registry.is_lost(agent_id):
            self._current.discard(agent_id)
        elif agent_id in self._current:
            return
        self._noticed[agent_id] = None
        self._wake.set()

    def forget(self) -> None:
        """Assume of no group that it has recorded its online members: after a reconnect, the server may have lost entries."""
        self._current.clear()

    async def follow(self) -> None:
        """Check every agent once, and each agent after a change, until cancelled. Changes precede the first check."""
        self._review.extend(record.card.agent_id for record in self._registry.cards())
        slots = asyncio.Semaphore(_CONCURRENT_AGENTS)
        try:
            async with TaskGroup() as group:
                while True:
                    await slots.acquire()
                    group.create_task(self._check(await self._next(), slots))
        finally:
            for timer in self._again.values():
                timer.cancel()

    async def reconcile(self, agent_id: AgentId) -> None:
        """Append to each open group of an agent that it is lost or has returned, unless the log states it.

        An agent that is silent, but not lost, is skipped.

        Raises:
            UnavailableError: Not every group was updated.
        """
        if not (self._registry.is_online(agent_id) or self._registry.is_lost(agent_id)):
            self._current.discard(agent_id)
            return
        comm_ids, failed = iter(await self._memberships.of(agent_id)), dict[CommId, timedelta]()
        async with TaskGroup() as group:
            for _ in range(_CONCURRENT_GROUPS):
                group.create_task(self._update_groups(agent_id, comm_ids, failed))
        if failed:
            why = f"{len(failed)} groups of {agent_id} could not be updated, for example {next(iter(failed))}."
            raise UnavailableError(why, retry_after=max(failed.values()))

    async def _next(self) -> AgentId:
        while True:
            for agent_id in self._noticed:
                if agent_id not in self._busy:
                    del self._noticed[agent_id]
                    return agent_id
            if self._review:
                return self._review.popleft()
            self._wake.clear()
            await self._wake.wait()

    async def _check(self, agent_id: AgentId, slots: asyncio.Semaphore) -> None:
        """Check an agent. An agent that is being checked is checked again afterwards."""
        try:
            if agent_id in self._busy:
                self.notice(agent_id)
                return
            self._busy.add(agent_id)
            if self._registry.is_online(agent_id):
                self._current.add(agent_id)  # until it is lost, also during the update
            try:
                await self.reconcile(agent_id)
                self._failures.pop(agent_id, None)
            except Exception as error:  # noqa: BLE001 - logged and retried
                self._current.discard(agent_id)
                self._schedule_retry(agent_id, error)
            finally:
                self._busy.discard(agent_id)
                self._wake.set()
        finally:
            slots.release()

    def _schedule_retry(self, agent_id: AgentId, error: Exception) -> None:
        """Retry after the error's `retry_after`, at least with exponential backoff."""
        failures = min(self._failures.get(agent_id, 0), _MAX_DOUBLINGS)
        self._failures[agent_id] = failures + 1
        asked = error.retry_after if isinstance(error, UnavailableError) else None
        seconds = max(min(_RETRY_SECONDS * 2**failures, _MAX_RETRY_SECONDS), (asked or _NO_DELAY).total_seconds())
        untold.inc()
        _log.warning("membership_retry", agent_id=agent_id, error=str(error) or type(error).__name__, seconds=seconds)
        if (timer := self._again.pop(agent_id, None)) is not None:
            timer.cancel()  # one pending retry for each agent
        self._again[agent_id] = asyncio.get_running_loop().call_later(seconds, self._retry, agent_id)

    def _retry(self, agent_id: AgentId) -> None:
        self._again.pop(agent_id, None)
        self.notice(agent_id)

    async def _update_groups(self, agent_id: AgentId, comm_ids: Iterator[CommId], failed: dict[CommId, timedelta]) -> None:
        for comm_id in comm_ids:
            try:
                await self._update(comm_id, agent_id)
            except UnavailableError as error:
                failed[comm_id] = error.retry_after or _NO_DELAY
                _log.debug("membership_not_recorded", comm_id=comm_id, agent_id=agent_id, error=error.message)
            except Exception:  # noqa: BLE001 - a bug in one group must not stop the update of others
                failed[comm_id] = _NO_DELAY
                _log.exception("membership_not_recorded", comm_id=comm_id, agent_id=agent_id)

    async def _update(self, comm_id: CommId, agent_id: AgentId) -> None:
        """Append the agent's present state to one group, if it differs from the log.

        Raises:
            UnavailableError: The log does not answer.
        """
        if self._registry.is_online(agent_id):
            kind: type[MemberLost | MemberReturned] = MemberReturned
        elif self._registry.is_lost(agent_id):
            kind = MemberLost
        else:
            self._current.discard(agent_id)
            return
        head = await self._ledger.head(comm_id)
        if head is None or (agent_id in head.entry.state.living()) is (kind is MemberReturned):
            return  # without reading the policy of the group, which may have 100 kB
        try:
            await self._ledger.record(comm_id, kind(at=self._clock.now(), agent_id=agent_id))
            self._failures.pop(agent_id, None)
        except IllegalEventError as refusal:
            _log.debug("membership_unchanged", comm_id=comm_id, agent_id=agent_id, code=refusal.code)
