"""The real registry, group setup and routers over stores in memory, wired as their processes wire them over NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from ioa.ports.clock import Clock, IdSource
from ioa.ports.delivery import Inboxes
from ioa.ports.discovery import Discovery
from ioa.ports.inspection import FILLING, FILLING_QUEUE, FILLING_STORE
from ioa.ports.registry_store import RegistryView
from ioa.protocol.ids import CommId, PoolId, UserId
from ioa.runtime.appended import Appended
from ioa.runtime.endings import Endings
from ioa.runtime.group_quota import DEFAULT_GROUP_QUOTA, GroupQuota
from ioa.runtime.head_reads import HeadReads
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.stored_shares import StoredShares
from ioa.testing.memory_delivery import MemoryDeadLetters, MemoryPassingResults, MemoryProgress, MemoryResults, MemoryTimers
from ioa.testing.memory_file_store import MemoryFileStore
from ioa.testing.memory_goals import MemoryGoalRecords, MemoryTickets, MemoryWorkQueue
from ioa.testing.memory_log import MemoryGroupLog
from ioa.testing.memory_open_groups import MemoryMemberships, MemoryOpenGroups
from ioa.testing.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from ioa.testing.memory_retention import MemoryEndedGoals, MemoryGoalPages, MemoryGoalRemoval
from ioa.testing.memory_store_room import MemoryStoreRoom
from ioa.testing.memory_teams import MemoryTeams
from ioa_groups.dropped import DroppedGoals
from ioa_groups.files import FileQuotas, FileService
from ioa_groups.forks import ForkPorts, Forks
from ioa_groups.intake import Intake
from ioa_groups.intake_ports import IntakePorts
from ioa_groups.janitor import Janitor
from ioa_groups.leaders import Leaders
from ioa_groups.log_pages import LogPages
from ioa_groups.refusals import ToldRefusals
from ioa_groups.setup import GroupSetup, GroupSetupPorts, GroupTimeouts
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams
from ioa_groups.users_shares import KeptShares, WaitingShares
from ioa_registry.registry import Registry, RegistryPorts
from ioa_router.router import Router, RouterPorts

D = TypeVar("D", bound=Discovery)


@dataclass(frozen=True, kw_only=True)
class ServiceRules:
    """What the services of a system go by, and with what.

    Attributes:
        timeouts: Those of groups.
        lease: After which silence an agent is lost.
        renew_every: How often agents renew their leases.
        wait_for_agents: How long a goal waits for an agent that it names and that is not there.
        file_quotas: How much of files each may store.
        group_quota: What members may have their group take of the store.
        leading_pools: Pools that goals go to that name nobody; none: those that discovery finds.
        appended: What each may have appended; None: as much as comes.
        reads: What is read of logs for the messages of each; None: as much as comes.
        routers: How many replicas of the router there are, each with a ledger of its own.
    """

    timeouts: GroupTimeouts
    lease: timedelta
    renew_every: timedelta
    wait_for_agents: timedelta
    file_quotas: FileQuotas
    group_quota: GroupQuota = DEFAULT_GROUP_QUOTA
    leading_pools: tuple[PoolId, ...] = ()
    appended: Appended | None = None
    reads: HeadReads | None = None
    routers: int = 1


class RingingTimers(MemoryTimers):
    """Timers that say when there is another one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.armed = asyncio.Event()

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Remember the instant, and ring."""
        await super().schedule(comm_id, at)
        self.armed.set()


class MemoryServices(Generic[D]):
    """Registry, group setup and routers, over stores that share one clock. False in this: nothing is durable.

    Nothing happens by itself: whoever drives it brings goals to `intake`, and timers that are due to a router.

    Args:
        clock: Decides when leases, floors and pauses run out.
        ids: Names what has no name yet.
        rules: What they go by.
        inboxes: Where members are shown entries.
        work: Where goals wait for agents.
        discovery: Makes what finds agents among those that are registered.
        passing: Where refusals of goals are told; None: with the results.
    """

    def __init__(
        self,
        clock: Clock,
        ids: IdSource,
        rules: ServiceRules,
        *,
        inboxes: Inboxes,
        work: MemoryWorkQueue,
        discovery: Callable[[RegistryView], D],
        passing: MemoryPassingResults | None = None,
    ) -> None:
        self.log, self.timers, self.progress = MemoryGroupLog(), RingingTimers(clock), MemoryProgress()
        self.results, self.dead, self.artifacts = MemoryResults(), MemoryDeadLetters(), MemoryFileStore()
        self.goals, self.tickets = MemoryGoalRecords(), MemoryTickets()
        self.memberships, self.open_groups = MemoryMemberships(), MemoryOpenGroups()
        self.cards, self.leases = MemoryCards(), MemoryLeases(clock, rules.lease)
        self.view, self.sessions = MemoryRegistryView(self.cards, self.leases), MemorySessions()
        self.discovery = discovery(self.view)
        self.ended, self.pages, self.room = MemoryEndedGoals(), MemoryGoalPages(self.goals), MemoryStoreRoom()
        self.ledgers = [self._ledger(clock, rules, inboxes) for _ in range(rules.routers)]
        self.endings = Endings(self.results, self.ended)
        self.routers = [self._router(ledger, clock) for ledger in self.ledgers]

        def now() -> float:
            return clock.now().timestamp()

        self.fills_logs, self.fills_store = StoredShares(now, FILLING), StoredShares(now, FILLING_STORE, part=1)
        self.fills_queue = StoredShares(now, FILLING_QUEUE)
        self.kept = KeptShares(self.room, self.fills_store, StoredShares(now, FILLING_STORE, part=0))
        self.goes_on: list[UserId] = []
        """Users who went on with goals that were refused."""
        self.waiting = WaitingShares(self.room, self.fills_queue, clock, self.goes_on.append)
        self.teams, self.dropped = Teams(MemoryTeams(), clock, self.kept), DroppedGoals(now)
        self.setup = self._group_setup(clock, rules)
        self.log_pages = LogPages(
            ledger=self.ledgers[0],
            log=self.log,
            goals=self.goals,
            memberships=self.memberships,
            open_groups=self.open_groups,
            sessions=self.sessions,
        )
        self.files = FileService(
            store=self.artifacts,
            log=self.log,
            ledger=self.ledgers[0],
            tickets=self.tickets,
            clock=clock,
            quotas=rules.file_quotas,
            sessions=self.sessions,
        )
        self.leaders = Leaders(self.discovery, work, self.view, clock, rules.leading_pools)
        self.passing = passing or MemoryPassingResults(self.results)
        self.refusals = ToldRefusals(self.passing, clock, now)
        self.intake_ports = IntakePorts(
            goals=self.goals,
            work=work,
            timers=self.timers,
            files=self.files,
            dead=self.dead,
            registry=self.view,
            open_groups=self.open_groups,
            ledger=self.ledgers[0],
            endings=self.endings,
            leaders=self.leaders,
            tickets=self.tickets,
            clock=clock,
            shares=PoolShares(self.view, self.open_groups),
            teams=self.teams,
            forks=self._forks(clock),
            dropped=self.dropped,
            kept=self.kept,
            waiting=self.waiting,
            refusals=self.refusals,
        )
        self.intake = Intake(self.intake_ports, rules.wait_for_agents)
        self.removal = MemoryGoalRemoval(
            self.log, self.timers, self.artifacts, self.memberships, self.results, self.goals, self.open_groups
        )
        self.janitor = Janitor(self.pages, self.results, self.log, self.ended, self.removal, clock)
        self.registry = self._registry(clock, ids, rules, work)

    def _ledger(self, clock: Clock, rules: ServiceRules, inboxes: Inboxes) -> GroupLedger:
        return GroupLedger(
            log=self.log,
            timers=self.timers,
            inboxes=inboxes,
            results=self.results,
            open_groups=self.open_groups,
            clock=clock,
            quota=rules.group_quota,
            appended=rules.appended,
            reads=rules.reads,
        )

    def _router(self, ledger: GroupLedger, clock: Clock) -> Router:
        ports = RouterPorts(
            ledger=ledger,
            goals=self.goals,
            open_groups=self.open_groups,
            timers=self.timers,
            progress=self.progress,
            endings=self.endings,
            clock=clock,
            sessions=self.sessions,
        )
        return Router(ports)

    def _group_setup(self, clock: Clock, rules: ServiceRules) -> GroupSetup:
        ports = GroupSetupPorts(
            ledger=self.ledgers[0],
            log=self.log,
            goals=self.goals,
            registry=self.view,
            memberships=self.memberships,
            open_groups=self.open_groups,
            endings=self.endings,
            clock=clock,
            sessions=self.sessions,
            teams=self.teams,
            discovery=self.discovery,
        )
        return GroupSetup(ports, rules.timeouts)

    def _forks(self, clock: Clock) -> Forks:
        ports = ForkPorts(
            ledger=self.ledgers[0],
            log=self.log,
            goals=self.goals,
            registry=self.view,
            memberships=self.memberships,
            clock=clock,
            filling=self.fills_logs,
        )
        return Forks(ports)

    def _registry(self, clock: Clock, ids: IdSource, rules: ServiceRules, work: MemoryWorkQueue) -> Registry:
        ports = RegistryPorts(
            cards=self.cards,
            leases=self.leases,
            sessions=self.sessions,
            view=self.view,
            memberships=self.memberships,
            log=self.log,
            work=work,
            clock=clock,
            ids=ids,
        )
        return Registry(ports, rules.lease, rules.renew_every)
