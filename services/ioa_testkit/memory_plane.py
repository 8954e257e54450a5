"""The control plane in one object: the real registry, discovery, group setup and router over stores in memory.

`PlaneNetwork` is what agents see of it, `MemorySystemClient` what users do.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from ioa.adapters.system_clock import RandomIds
from ioa.errors import UnavailableError
from ioa.group.events import EncodedEntry
from ioa.group.requests import SequencedEntry
from ioa.ports.agent_network import GoalOffer
from ioa.ports.clock import Clock
from ioa.ports.inspection import FILLING, FILLING_QUEUE, FILLING_STORE
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import AgentId, CommId, PoolId
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register, RemoveAgent
from ioa.runtime.endings import Endings
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.stored_shares import StoredShares
from ioa.testing.memory_dead_letter_box import MemoryDeadLetterBox
from ioa.testing.memory_delivery import MemoryDeadLetters, MemoryPassingResults, MemoryProgress, MemoryResults, MemoryTimers
from ioa.testing.memory_file_store import MemoryFileStore
from ioa.testing.memory_goals import MemoryGoalRecords, MemoryTickets, MemoryWorkQueue
from ioa.testing.memory_log import MemoryGroupLog
from ioa.testing.memory_open_groups import MemoryMemberships, MemoryOpenGroups
from ioa.testing.memory_outcomes import MemoryOutcomes
from ioa.testing.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from ioa.testing.memory_retention import MemoryAgentRemoval, MemoryEndedGoals, MemoryGoalPages, MemoryGoalRemoval
from ioa.testing.memory_store_room import MemoryStoreRoom
from ioa.testing.memory_teams import MemoryTeams
from ioa_discovery.assessment import Assessor
from ioa_discovery.search.experience import Experience
from ioa_groups.dropped import DroppedGoals
from ioa_groups.files import FileQuotas, FileService
from ioa_groups.forks import ForkPorts, Forks
from ioa_groups.intake import Intake
from ioa_groups.intake_ports import IntakePorts
from ioa_groups.janitor import Janitor
from ioa_groups.leaders import Leaders
from ioa_groups.refusals import ToldRefusals
from ioa_groups.setup import GroupSetup, GroupSetupPorts, GroupTimeouts
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams
from ioa_groups.users_shares import KeptShares, WaitingShares
from ioa_registry.registry import Registry, RegistryPorts
from ioa_registry.removal import AgentRemover
from ioa_router.router import Router, RouterPorts
from ioa_testkit.memory_discovery import MemoryDiscovery

Push = Callable[[AgentId, SequencedEntry], Sequence[SequencedEntry]]
"""What becomes of one push: what arrives instead of it, such as nothing, or the same twice."""

_LEASE = timedelta(hours=1)
_LOOK_AGAIN = timedelta(milliseconds=50)


class PushedInboxes:
    """Pushes that go to whoever listens now."""

    def __init__(self) -> None:
        self.push_as: Push = lambda _, entry: [entry]
        self._open: dict[AgentId, list[asyncio.Queue[SequencedEntry]]] = defaultdict(list)

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Show an entry to every member that listens."""
        for agent_id in audience:
            self.deliver(agent_id, SequencedEntry(seq=seq, previous_seq=previous_seq, entry=entry.entry))

    def deliver(self, agent_id: AgentId, entry: SequencedEntry) -> None:
        """Show an entry to one member."""
        for arriving in self.push_as(agent_id, entry):
            for inbox in self._open[agent_id]:
                inbox.put_nowait(arriving)

    @asynccontextmanager
    async def open(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        """Open an agent's live view."""
        arrived: asyncio.Queue[SequencedEntry] = asyncio.Queue()
        self._open[agent_id].append(arrived)

        async def entries() -> AsyncIterator[SequencedEntry]:
            while True:
                yield await arrived.get()

        try:
            yield entries()
        finally:
            self._open[agent_id].remove(arrived)


class OfferedWork(MemoryWorkQueue):
    """A `WorkQueue` that agents take goals from. False in this: what is taken is never redelivered by itself.

    What was taken can be looked at until it is acknowledged: a goal that is gone without a group is taken for a dropped one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._offers: dict[PoolId | None, asyncio.Queue[tuple[int, GoalOffer]]] = defaultdict(asyncio.Queue)

    async def put(self, record: GoalRecord, pool: PoolId | None, ticket: str | None = None) -> int:
        """Offer a goal."""
        seq = await super().put(record, pool, ticket)
        self._offers[pool].put_nowait((seq, GoalOffer(record.goal, record.deadline, 1, ticket)))
        return seq

    def offer_again(self, seq: int, offer: GoalOffer, pool: PoolId | None) -> None:
        """Offer what was taken once more."""
        self._offers[pool].put_nowait((seq, offer))

    async def take(self, pool: PoolId | None) -> tuple[int, GoalOffer]:
        """Wait for a goal of a queue that was not withdrawn, and take it; its number acknowledges it, or offers it again."""
        while True:
            seq, offer = await self._offers[pool].get()
            if seq in self._waiting[pool]:
                self.taken.add(seq)
                return seq, offer

    def acknowledge(self, seq: int, pool: PoolId | None) -> None:
        """Take off the queue what was taken."""
        self._waiting[pool].pop(seq, None)

    def waiting(self, pool: PoolId | None = None) -> Sequence[Goal]:
        """Return the goals that nobody has taken."""
        return [goal for seq, goal in self._waiting[pool].items() if seq not in self.taken]


class _RingingTimers(MemoryTimers):
    """Timers that say when there is another one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.armed = asyncio.Event()

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        await super().schedule(comm_id, at)
        self.armed.set()


class _GoalRemoval(MemoryGoalRemoval):
    """Removal that also knows what is open."""

    open_groups: MemoryOpenGroups

    async def remove_from_open(self, comm_id: CommId) -> None:
        await super().remove_from_open(comm_id)
        await self.open_groups.remove(comm_id)


@dataclass(frozen=True)
class _Published:
    subject: str
    data: bytes
    identity: str


class MemoryControlPlane:
    """Every service of a system, over stores that share one clock.

    False in this: nothing is durable, no lease ever runs out while an agent renews it within an hour, and nobody watches over
    members that are lost. Goals are taken in and deadlines come by themselves only while `keep` runs.

    Args:
        clock: Decides when leases, floors and pauses run out.
        renew_every: How often agents renew their leases.
        task_lease: How long a task may go without a report.
        model_patience: How long the models of all members of a group may be away.
    """

    def __init__(
        self, clock: Clock, *, renew_every: timedelta, task_lease: timedelta, model_patience: timedelta = timedelta(minutes=5)
    ) -> None:
        self.clock = clock
        self.log, self.results, self.artifacts = MemoryGroupLog(), MemoryResults(), MemoryFileStore()
        self.inboxes, self.progress, self.outcomes = PushedInboxes(), MemoryProgress(), MemoryOutcomes()
        self.records, self.work, self.dead = MemoryGoalRecords(), OfferedWork(), MemoryDeadLetters()
        self.timers = _RingingTimers(clock)
        self.memberships, self.open_groups = MemoryMemberships(), MemoryOpenGroups()
        self.cards, self.leases = MemoryCards(), MemoryLeases(clock, _LEASE)
        self.view, self.sessions = MemoryRegistryView(self.cards, self.leases), MemorySessions()
        self.ended, self.pages, self.tickets = MemoryEndedGoals(), MemoryGoalPages(self.records), MemoryTickets()
        self.ledger = GroupLedger(self.log, self.timers, self.inboxes, self.results, self.open_groups, clock)
        endings = Endings(self.results, self.ended)
        minute = timedelta(minutes=1)
        timeouts = GroupTimeouts(
            max_depth=3,
            floor_timeout=minute,
            task_lease=task_lease,
            pause_timeout=10 * minute,
            conclusion_timeout=minute,
            model_patience=model_patience,
            patience=60 * minute,
        )
        self.discovery = MemoryDiscovery(self.view, clock, renew_every)
        room, now = MemoryStoreRoom(), lambda: clock.now().timestamp()
        kept = KeptShares(room, StoredShares(now, FILLING_STORE), StoredShares(now, FILLING_STORE, part=0))
        waiting = WaitingShares(room, StoredShares(now, FILLING_QUEUE), clock)
        self.teams = Teams(MemoryTeams(), clock, kept)
        setup_ports = GroupSetupPorts(
            ledger=self.ledger,
            log=self.log,
            goals=self.records,
            registry=self.view,
            memberships=self.memberships,
            open_groups=self.open_groups,
            endings=endings,
            clock=clock,
            sessions=self.sessions,
            teams=self.teams,
            discovery=self.discovery,
        )
        self.setup = GroupSetup(setup_ports, timeouts)
        router_ports = RouterPorts(
            ledger=self.ledger,
            goals=self.records,
            open_groups=self.open_groups,
            timers=self.timers,
            progress=self.progress,
            endings=endings,
            clock=clock,
            sessions=self.sessions,
        )
        self.router = Router(router_ports)
        self.assessor = Assessor(self.log, self.view, self.outcomes, clock, self.sessions, Experience(clock))
        registry_ports = RegistryPorts(
            cards=self.cards,
            leases=self.leases,
            sessions=self.sessions,
            view=self.view,
            memberships=self.memberships,
            log=self.log,
            work=self.work,
            clock=clock,
            ids=RandomIds(),
        )
        self.registry = Registry(registry_ports, _LEASE, renew_every)
        removal = _GoalRemoval(self.log, self.timers, self.artifacts, self.memberships, self.results, self.records)
        removal.open_groups = self.open_groups
        self.janitor = Janitor(self.pages, self.results, self.log, self.ended, removal, clock)
        self._remover = AgentRemover(self.cards, self.view, MemoryAgentRemoval(self.cards, self.leases, self.work), clock)
        self.files = FileService(
            store=self.artifacts,
            log=self.log,
            ledger=self.ledger,
            tickets=self.tickets,
            clock=clock,
            quotas=FileQuotas(256_000_000, 1_000_000_000),
            sessions=self.sessions,
        )
        fork_ports = ForkPorts(
            ledger=self.ledger,
            log=self.log,
            goals=self.records,
            registry=self.view,
            memberships=self.memberships,
            clock=clock,
            filling=StoredShares(now, FILLING),
        )
        intake_ports = IntakePorts(
            goals=self.records,
            work=self.work,
            timers=self.timers,
            files=self.files,
            dead=self.dead,
            registry=self.view,
            open_groups=self.open_groups,
            ledger=self.ledger,
            endings=endings,
            leaders=Leaders(self.discovery, self.work, self.view, clock),
            tickets=self.tickets,
            clock=clock,
            shares=PoolShares(self.view, self.open_groups),
            teams=self.teams,
            forks=Forks(fork_ports),
            dropped=DroppedGoals(now),
            kept=kept,
            waiting=waiting,
            refusals=ToldRefusals(MemoryPassingResults(self.results), clock, now),
        )
        self._intake = Intake(intake_ports, timedelta(seconds=1))
        self.dead_letters = MemoryDeadLetterBox(self.dead, clock, self.publish)
        self._published: asyncio.Queue[_Published] = asyncio.Queue()
        self._numbers = count(1)

    async def publish(self, subject: str, data: bytes) -> None:
        """Publish a goal as users do."""
        self._published.put_nowait(_Published(subject, data, f"published-{next(self._numbers)}"))

    async def register(self, request: Register) -> Lease:
        """Store the card, take a lease, and have the agent found."""
        lease = await self.registry.register(request)
        await self.discovery.touch(request.card.agent_id)
        return lease

    async def deregister(self, request: Deregister) -> None:
        """Take an agent offline."""
        await self.registry.deregister(request)
        await self.discovery.touch(request.agent_id)

    async def remove_agent(self, request: RemoveAgent) -> Acknowledged:
        """Forget an agent."""
        answer = await self._remover.remove(request)
        await self.discovery.touch(request.agent_id)
        return answer

    async def fire_due(self) -> None:
        """Have the router look at every deadline that has come."""
        for comm_id in self.timers.take_due():
            await self.router.fire_timer(comm_id)

    async def keep(self) -> None:
        """Take in goals that are published, and fire deadlines as they come, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fire())
            while True:
                group.create_task(self._take_in(await self._published.get()))

    async def _take_in(self, published: _Published) -> None:
        while True:
            try:
                await self._intake.accept(published.subject, published.data, published.identity)
                return
            except UnavailableError:
                await asyncio.sleep(_LOOK_AGAIN.total_seconds())

    async def _fire(self) -> None:
        while True:
            self.timers.armed.clear()
            next_at = self.timers.next_at()
            wait = None if next_at is None else max(0.0, (next_at - self.clock.now()).total_seconds())
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self.timers.armed.wait()
            await self.fire_due()
