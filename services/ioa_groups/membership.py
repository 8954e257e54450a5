"""Telling groups which of their members are lost, and which have returned.

Every replica does it; the machine takes each event once. Who is lost is judged elsewhere (`ioa.protocol.liveness`). What fails
here, for whatever reason, concerns one group: it is said, counted and tried again, and the others go on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from datetime import timedelta

import structlog
from prometheus_client import Counter

from ioa.cancellation import TaskGroup
from ioa.errors import UnavailableError
from ioa.group.events import MemberLost, MemberReturned
from ioa.group.rejection import IllegalEventError
from ioa.ports.clock import Clock
from ioa.ports.delivery import Memberships
from ioa.ports.registry_store import LivenessView
from ioa.protocol.ids import AgentId, CommId
from ioa.runtime.ledger import GroupLedger

_AGENTS_AT_ONCE = _GROUPS_AT_ONCE = 4
"""Agents that are told at the same time, and groups of each; the newest entry and the policy of each group are in memory then."""
_RETRY_SECONDS, _LONGEST_RETRY_SECONDS, _MOST_DOUBLINGS = 1.0, 60.0, 6
_AT_ANY_TIME = timedelta(0)

_log = structlog.get_logger(__name__)

untold = Counter("ioa_groups_untold_total", "Attempts to tell groups of a lost or returned member that failed and are made again")


class MembershipWatch:
    """Record lost and returned members in their groups' logs."""

    def __init__(self, ledger: GroupLedger, registry: LivenessView, memberships: Memberships, clock: Clock) -> None:
        self._ledger = ledger
        self._registry = registry
        self._memberships = memberships
        self._clock = clock
        self._noticed: dict[AgentId, None] = {}
        self._review: deque[AgentId] = deque()
        self._busy: set[AgentId] = set()
        self._in_line: set[AgentId] = set()
        """Whose groups know that they are online, unless they were lost since."""
        self._failures: dict[AgentId, int] = {}
        self._again: dict[AgentId, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def notice(self, agent_id: AgentId) -> None:
        """Have an agent looked at that is lost or has returned.

        One that was briefly away and not lost is not: it may leave and come back twice a second, and a look reads a hundred groups.
        """
        if self._registry.is_lost(agent_id):
            self._in_line.discard(agent_id)
        elif agent_id in self._in_line:
            return
        self._noticed[agent_id] = None
        self._wake.set()

    def forget(self) -> None:
        """Take it of no group that it knows who is online: the connection was renewed, maybe to a server that has lost some."""
        self._in_line.clear()

    async def follow(self) -> None:
        """Look at everybody once, since groups may have been told nothing for a while, and first at each change, for ever."""
        self._review.extend(record.card.agent_id for record in self._registry.cards())
        slots = asyncio.Semaphore(_AGENTS_AT_ONCE)
        try:
            async with TaskGroup() as group:
                while True:
                    await slots.acquire()
                    group.create_task(self._look(await self._next(), slots))
        finally:
            for timer in self._again.values():
                timer.cancel()

    async def reconcile(self, agent_id: AgentId) -> None:
        """Bring each open group of an agent in line with whether it is online or lost. One that is briefly away is left alone.

        Raises:
            UnavailableError: Not every group could be told.
        """
        if not (self._registry.is_online(agent_id) or self._registry.is_lost(agent_id)):
            self._in_line.discard(agent_id)
            return
        comm_ids, failed = iter(await self._memberships.of(agent_id)), dict[CommId, timedelta]()
        async with TaskGroup() as group:
            for _ in range(_GROUPS_AT_ONCE):
                group.create_task(self._tell_each(agent_id, comm_ids, failed))
        if failed:
            why = f"{len(failed)} groups could not be told of {agent_id}, one of them {next(iter(failed))}."
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

    async def _look(self, agent_id: AgentId, slots: asyncio.Semaphore) -> None:
        """Look at an agent; one at which somebody looks already is looked at again after that."""
        try:
            if agent_id in self._busy:
                self.notice(agent_id)
                return
            self._busy.add(agent_id)
            if self._registry.is_online(agent_id):
                self._in_line.add(agent_id)  # until it is lost, be it while its groups are told
            try:
                await self.reconcile(agent_id)
                self._failures.pop(agent_id, None)
            except Exception as error:  # noqa: BLE001 - it is put off, and logged
                self._in_line.discard(agent_id)
                self._put_off(agent_id, error)
            finally:
                self._busy.discard(agent_id)
                self._wake.set()
        finally:
            slots.release()

    def _put_off(self, agent_id: AgentId, error: Exception) -> None:
        """Look again when there is room, which whoever refused has said; and ever later while looks tell nobody."""
        failures = min(self._failures.get(agent_id, 0), _MOST_DOUBLINGS)
        self._failures[agent_id] = failures + 1
        asked = error.retry_after if isinstance(error, UnavailableError) else None
        seconds = max(min(_RETRY_SECONDS * 2**failures, _LONGEST_RETRY_SECONDS), (asked or _AT_ANY_TIME).total_seconds())
        untold.inc()
        _log.warning("membership_put_off", agent_id=agent_id, error=str(error) or type(error).__name__, seconds=seconds)
        if (timer := self._again.pop(agent_id, None)) is not None:
            timer.cancel()  # who comes back again and again has one look more, and not one for each time
        self._again[agent_id] = asyncio.get_running_loop().call_later(seconds, self._retry, agent_id)

    def _retry(self, agent_id: AgentId) -> None:
        self._again.pop(agent_id, None)
        self.notice(agent_id)

    async def _tell_each(self, agent_id: AgentId, comm_ids: Iterator[CommId], failed: dict[CommId, timedelta]) -> None:
        for comm_id in comm_ids:
            try:
                await self._tell(comm_id, agent_id)
            except UnavailableError as error:
                failed[comm_id] = error.retry_after or _AT_ANY_TIME
                _log.debug("group_untold", comm_id=comm_id, agent_id=agent_id, error=error.message)
            except Exception:  # noqa: BLE001 - one group's bug must not keep others from being told
                failed[comm_id] = _AT_ANY_TIME
                _log.exception("group_untold", comm_id=comm_id, agent_id=agent_id)

    async def _tell(self, comm_id: CommId, agent_id: AgentId) -> None:
        """Tell one group what is true now, which may have changed while others were told. Of most there is nothing to tell.

        Raises:
            UnavailableError: The group cannot be reached now.
        """
        if self._registry.is_online(agent_id):
            kind: type[MemberLost | MemberReturned] = MemberReturned
        elif self._registry.is_lost(agent_id):
            kind = MemberLost
        else:
            self._in_line.discard(agent_id)
            return
        head = await self._ledger.head(comm_id)
        if head is None or (agent_id in head.entry.state.living()) is (kind is MemberReturned):
            return  # before the policy of the group is read, which may have a hundred thousand bytes
        try:
            await self._ledger.record(comm_id, kind(at=self._clock.now(), agent_id=agent_id))
            self._failures.pop(agent_id, None)
        except IllegalEventError as refusal:
            _log.debug("membership_unchanged", comm_id=comm_id, agent_id=agent_id, code=refusal.code)
