"""The real registry, group setup and routers over stores in memory, wired as their processes wire them over NATS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from ioa.adapters.nats.delivery.goal_orders import UnreadGoals
from ioa.ports.clock import Clock, IdSource
from ioa.ports.delivery import Inboxes
from ioa.ports.discovery import Discovery
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import GoalName
from ioa.runtime.endings import Endings
from ioa.runtime.group_limits import DEFAULT_GROUP_LIMITS, GroupLimits
from ioa.runtime.ledger import GroupLedger
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.parts import GroupParts, GroupServiceRules
from ioa_registry.registry import Registry, RegistryPorts
from ioa_router.router import Router, RouterPorts
from tests.rig.memory_delivery import MemoryDeadLetters, MemoryProgress, MemoryResults, MemoryTimers
from tests.rig.memory_file_store import MemoryFileStore
from tests.rig.memory_goals import MemoryGoalRecords, MemoryTickets, MemoryWorkQueue
from tests.rig.memory_log import MemoryGroupLog
from tests.rig.memory_open_groups import MemoryMemberships, MemoryOpenGroups
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from tests.rig.memory_retention import MemoryEndedGoals, MemoryGoalPages, MemoryGoalRemoval
from tests.rig.memory_storage import MemoryStorage
from tests.rig.memory_teams import MemoryTeams

D = TypeVar("D", bound=Discovery)


@dataclass(frozen=True, kw_only=True)
class ServiceRules(GroupServiceRules):
    """What the services of a system go by, and with what.

    Attributes:
        lease: After which silence an agent is lost.
        renew_every: How often agents renew their leases.
        group_limits: Limits of each group.
        routers: How many replicas of the router there are, each with a ledger of its own.
    """

    lease: timedelta
    renew_every: timedelta
    group_limits: GroupLimits = DEFAULT_GROUP_LIMITS
    routers: int = 1


class MemoryUnreadGoals(UnreadGoals):
    """No goals: tests bring them to intake at once."""

    def __init__(self) -> None:
        pass

    async def contains(self, goal: GoalName) -> bool:
        """Return False."""
        return False


class MemoryServices(GroupParts, Generic[D]):
    """Registry, group setup and routers, over stores that share one clock. False in this: nothing is durable.

    Nothing happens by itself: whoever drives it brings goals to `intake`, and timers that are due to a router.

    Args:
        clock: Decides when leases, floors and pauses run out.
        ids: Names what has no name yet.
        rules: What they go by.
        inboxes: Where members are shown entries.
        work: Where goals wait for agents.
        discovery: Makes what finds agents among those that are registered.
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
    ) -> None:
        self.log, self.timers, self.progress = MemoryGroupLog(), MemoryTimers(clock), MemoryProgress()
        self.results, self.dead, self.artifacts = MemoryResults(), MemoryDeadLetters(), MemoryFileStore()
        self.goals, self.tickets = MemoryGoalRecords(), MemoryTickets()
        self.memberships, self.open_groups = MemoryMemberships(), MemoryOpenGroups()
        self.cards, self.leases = MemoryCards(), MemoryLeases(clock, rules.lease)
        self.view, self.sessions = MemoryRegistryView(self.cards, self.leases), MemorySessions()
        self.discovery = discovery(self.view)
        self.ended, self.pages, self.storage = MemoryEndedGoals(), MemoryGoalPages(self.goals), MemoryStorage()
        self.ledgers = [self._ledger(clock, rules, inboxes) for _ in range(rules.routers)]
        self.endings = Endings(self.results, self.ended)
        self.routers = [self._router(ledger, clock) for ledger in self.ledgers]

        def now() -> float:
            return clock.now().timestamp()

        self.removal = MemoryGoalRemoval(
            self.log, self.timers, self.artifacts, self.memberships, self.results, self.goals, self.open_groups
        )
        ports = GroupServicePorts(
            clock=clock,
            log=self.log,
            ledger=self.ledgers[0],
            goals=self.goals,
            timers=self.timers,
            registry=self.view,
            memberships=self.memberships,
            open_groups=self.open_groups,
            sessions=self.sessions,
            results=self.results,
            ended=self.ended,
            endings=self.endings,
            files=self.artifacts,
            teams=MemoryTeams(),
            dead=self.dead,
            work=work,
            tickets=self.tickets,
            casting=self.discovery,
            leading=self.discovery,
            pages=self.pages,
            removal=self.removal,
            store=self.storage,
            unread=MemoryUnreadGoals(),
        )
        super().__init__(ports, rules, now)
        self.registry = self._registry(clock, ids, rules, work)

    def _ledger(self, clock: Clock, rules: ServiceRules, inboxes: Inboxes) -> GroupLedger:
        return GroupLedger(
            log=self.log,
            timers=self.timers,
            inboxes=inboxes,
            results=self.results,
            open_groups=self.open_groups,
            clock=clock,
            limits=rules.group_limits,
        )

    def _router(self, ledger: GroupLedger, clock: Clock) -> Router:
        ports = RouterPorts(
            ledger=ledger,
            goals=self.goals,
            open_groups=self.open_groups,
            memberships=self.memberships,
            timers=self.timers,
            progress=self.progress,
            endings=self.endings,
            clock=clock,
            sessions=self.sessions,
        )
        return Router(ports)

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
