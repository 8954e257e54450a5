"""The real registry, group setup and routers over stores in memory, wired as their processes wire them over NATS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ioa.ports.clock import Clock, IdSource
from ioa.ports.delivery import Inboxes
from ioa.ports.discovery import Discovery
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import GoalName
from ioa.runtime.audit_log import AuditLog
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.group_stores import GroupStores
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.recorded import RecordedDeadLetters, RecordedResults
from ioa_groups.goal_orders import UnreadGoals
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.parts import GroupParts
from ioa_registry.agent_registry import Registry, RegistryPorts
from ioa_router.router import Router
from tests.rig.memory_delivery import MemoryAuditSink, MemoryDeadLetters, MemoryProgress, MemoryResults, MemoryTimers
from tests.rig.memory_file_store import MemoryFileStore
from tests.rig.memory_goals import MemoryEndedGoals, MemoryGoalRecords, MemoryTickets, MemoryWorkQueue
from tests.rig.memory_log import MemoryGroupLog
from tests.rig.memory_open_groups import MemoryMemberships, MemoryOpenGroups
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView, MemorySessions
from tests.rig.memory_storage import MemoryStorage
from tests.rig.memory_teams import MemoryTeams

D = TypeVar("D", bound=Discovery)


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
        settings: Settings of the services.
        inboxes: Where members are shown entries.
        work: Where goals wait for agents.
        discovery: Makes what finds agents among those that are registered.
        routers: Number of replicas of the router, each with its own ledger.
    """

    def __init__(
        self,
        clock: Clock,
        ids: IdSource,
        settings: ControlPlaneSettings,
        *,
        inboxes: Inboxes,
        work: MemoryWorkQueue,
        discovery: Callable[[RegistryView], D],
        routers: int = 1,
    ) -> None:
        self.log, self.timers, self.progress = MemoryGroupLog(), MemoryTimers(clock), MemoryProgress()
        self.results, self.dead, self.artifacts = MemoryResults(), MemoryDeadLetters(), MemoryFileStore()
        self.goals, self.tickets = MemoryGoalRecords(), MemoryTickets()
        self.memberships, self.open_groups = MemoryMemberships(), MemoryOpenGroups()
        self.cards, self.leases = MemoryCards(), MemoryLeases(clock, settings.lease)
        self.view, self.sessions = MemoryRegistryView(self.cards, self.leases), MemorySessions()
        self.discovery = discovery(self.view)
        self.ended, self.storage = MemoryEndedGoals(), MemoryStorage()
        self.audit = AuditLog(MemoryAuditSink(), clock, "test")
        self._recorded = RecordedResults(self.results, self.ended, self.goals, self.audit)
        stores = [self._stores(clock, settings, inboxes) for _ in range(routers)]
        self.ledgers = [one.ledger for one in stores]
        self.routers = [Router(one, self.progress) for one in stores]
        ports = GroupServicePorts(
            **vars(stores[0]),
            registry=self.view,
            files=self.artifacts,
            teams=MemoryTeams(),
            work=work,
            tickets=self.tickets,
            casting=self.discovery,
            leading=self.discovery,
            store=self.storage,
            unread=MemoryUnreadGoals(),
        )
        super().__init__(ports, settings)
        self.registry = self._registry(clock, ids, settings, work)

    def _stores(self, clock: Clock, settings: ControlPlaneSettings, inboxes: Inboxes) -> GroupStores:
        return GroupStores(
            clock=clock,
            audit=self.audit,
            log=self.log,
            ledger=GroupLedger(self.log, self.timers, inboxes, self._recorded, self.open_groups, clock, settings.group_limits),
            goals=self.goals,
            timers=self.timers,
            open_groups=self.open_groups,
            memberships=self.memberships,
            sessions=self.sessions,
            results=self._recorded,
            ended=self.ended,
            dead=RecordedDeadLetters(self.dead, self.audit),
        )

    def _registry(self, clock: Clock, ids: IdSource, settings: ControlPlaneSettings, work: MemoryWorkQueue) -> Registry:
        ports = RegistryPorts(
            cards=self.cards,
            leases=self.leases,
            sessions=self.sessions,
            view=self.view,
            memberships=self.memberships,
            work=work,
            clock=clock,
            ids=ids,
        )
        return Registry(ports, settings.renew_every)
