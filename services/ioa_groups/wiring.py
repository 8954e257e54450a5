"""What group setup consists of, wired over NATS; `__main__` runs it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ioa.adapters.nats.buckets import NatsRegistryView
from ioa.adapters.nats.clock import NatsClock
from ioa.adapters.nats.connection import Connection
from ioa.adapters.nats.delivery import NatsDeadLetters, NatsPassingResults
from ioa.adapters.nats.discovery import NatsDiscovery
from ioa.adapters.nats.files import NatsFileStore
from ioa.adapters.nats.flood_tellers import NatsRefusalTeller
from ioa.adapters.nats.goals import NatsGoalRecords, NatsWorkQueue
from ioa.adapters.nats.open_groups import NatsMemberships
from ioa.adapters.nats.retention import NatsGoalPages, NatsGoalRemoval
from ioa.adapters.nats.store_room import NatsSharedStore, NatsWaitingGoals
from ioa.adapters.nats.teams import NatsTeams
from ioa.adapters.nats.tickets import NatsTickets
from ioa.adapters.nats.topology import Shares
from ioa.ports.inspection import FILLING, FILLING_QUEUE, FILLING_STORE, SlowedCaller
from ioa.protocol import subjects
from ioa.runtime.appended import Appended
from ioa.runtime.audit import AuditedDeadLetters, AuditedGoalRecords, AuditLog
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.dead_letter_share import SharedDeadLetters, kept_in, user_of_goal
from ioa.runtime.goal_metrics import CountedDeadLetters
from ioa.runtime.group_stores import group_stores
from ioa.runtime.stored_shares import StoredShares
from ioa_groups.dropped import DroppedGoals
from ioa_groups.files import FileQuotas, FileService
from ioa_groups.forks import ForkPorts, Forks
from ioa_groups.garbage import QueueGarbage
from ioa_groups.intake import Intake
from ioa_groups.intake_ports import IntakePorts
from ioa_groups.janitor import Janitor
from ioa_groups.leaders import ANSWERED_WITHIN, Leaders
from ioa_groups.log_pages import LogPages
from ioa_groups.membership import MembershipWatch
from ioa_groups.refusals import ToldRefusals
from ioa_groups.setup import CAST_WITHIN, GroupSetup, GroupSetupPorts, GroupTimeouts
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams
from ioa_groups.users_shares import KeptShares, WaitingShares


class NatsGroupServices:
    """The parts of one replica; those that are public are run or asked.

    Args:
        client: Where requests come from, and everything but files goes.
        carrier: Where files go, so that no request waits behind pieces of them.
        settings: What they are told.
        clock: Stamps what is recorded.
        audit: Is told what was done for whom.
        shares: The shares of the store; None where nothing bounds it.
    """

    def __init__(
        self,
        client: Connection,
        carrier: Connection,
        settings: ControlPlaneSettings,
        clock: NatsClock,
        audit: AuditLog,
        shares: Shares | None,
    ) -> None:
        js, store_bytes = client.jetstream(), None if shares is None else shares.store
        kept_letters = SharedDeadLetters(NatsDeadLetters(js), user_of_goal, time.monotonic, kept_in(store_bytes))
        self.dead = AuditedDeadLetters(CountedDeadLetters(kept_letters), audit)
        self.stores = group_stores(client, clock, AuditedGoalRecords(NatsGoalRecords(js), audit), self.dead, audit)
        self.registry, self._memberships = NatsRegistryView(client, settings.lease), NatsMemberships(client)
        self._work, self.tickets, self.refused = NatsWorkQueue(js), NatsTickets(js), NatsRefusalTeller(client)

        self._fills_logs = StoredShares(time.monotonic, FILLING, audit.note_slowed)
        self._fills_store = StoredShares(time.monotonic, FILLING_STORE, audit.note_slowed, part=1)
        self._fills_queue = StoredShares(time.monotonic, FILLING_QUEUE, audit.note_slowed)
        of_refusals = StoredShares(time.monotonic, FILLING_STORE, part=0)
        self._kept = KeptShares(NatsSharedStore(js, store_bytes, settings.replicas), self._fills_store, of_refusals)
        self.waiting = WaitingShares(NatsWaitingGoals(js), self._fills_queue, clock, self.refused.note)
        self._appended = Appended(time.monotonic, settings.append_rate, audit.note_slowed, self._fills_logs)

        self.ledger = self.stores.ledger(settings, self._appended)
        self.teams, self._dropped = Teams(NatsTeams(client), clock, self._kept), DroppedGoals(time.monotonic)
        self.setup = self._group_setup(client, settings)
        self.log_pages = LogPages(
            ledger=self.ledger,
            log=self.stores.log,
            goals=self.stores.goals,
            memberships=self._memberships,
            open_groups=self.stores.open_groups,
            sessions=self.stores.sessions,
        )
        quotas = FileQuotas(settings.agent_files_bytes, settings.user_files_bytes)
        self.files = FileService(
            store=NatsFileStore(carrier),
            log=self.stores.log,
            ledger=self.ledger,
            tickets=self.tickets,
            clock=clock,
            quotas=quotas if shares is None else quotas.within(shares.files, shares.artifacts),
            sessions=self.stores.sessions,
        )
        self.refusals = ToldRefusals(NatsPassingResults(client), clock, time.monotonic)
        self.intake = Intake(self._intake_ports(client, settings), settings.lease, users_are_known=settings.has_own_key)
        self.garbage = QueueGarbage(self._work, self.dead)
        removal = NatsGoalRemoval(client)
        self.janitor = Janitor(NatsGoalPages(client), self.stores.results, self.stores.log, self.stores.ended, removal, clock)
        self.watch = MembershipWatch(self.ledger, self.registry, self._memberships, clock)
        self.registry.listen_for_losses(self.watch.notice)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return who is slowed down by other means than the number of requests."""
        return [*self._dropped.told(), *self._appended.slowed(), *self._fills_store.slowed(), *self._fills_queue.slowed()]

    def _group_setup(self, client: Connection, settings: ControlPlaneSettings) -> GroupSetup:
        ports = GroupSetupPorts(
            ledger=self.ledger,
            log=self.stores.log,
            goals=self.stores.goals,
            registry=self.registry,
            memberships=self._memberships,
            open_groups=self.stores.open_groups,
            endings=self.stores.endings,
            clock=self.stores.clock,
            sessions=self.stores.sessions,
            teams=self.teams,
            discovery=NatsDiscovery(client, subjects.GROUP_SETUP, CAST_WITHIN),
        )
        timeouts = GroupTimeouts(
            max_depth=settings.max_depth,
            floor_timeout=settings.floor_timeout,
            task_lease=settings.task_lease,
            pause_timeout=settings.pause_timeout,
            conclusion_timeout=settings.conclusion_timeout,
            model_patience=settings.model_patience,
            patience=settings.patience,
        )
        return GroupSetup(ports, timeouts)

    def _intake_ports(self, client: Connection, settings: ControlPlaneSettings) -> IntakePorts:
        stores = self.stores
        discovery = NatsDiscovery(client, subjects.GROUP_SETUP, ANSWERED_WITHIN)
        fork_ports = ForkPorts(
            ledger=self.ledger,
            log=stores.log,
            goals=stores.goals,
            registry=self.registry,
            memberships=self._memberships,
            clock=stores.clock,
            filling=self._fills_logs,
        )
        return IntakePorts(
            goals=stores.goals,
            work=self._work,
            timers=stores.timers,
            files=self.files,
            dead=self.dead,
            registry=self.registry,
            open_groups=stores.open_groups,
            ledger=self.ledger,
            endings=stores.endings,
            leaders=Leaders(discovery, self._work, self.registry, stores.clock, settings.leading_pools),
            tickets=self.tickets,
            clock=stores.clock,
            shares=PoolShares(self.registry, stores.open_groups, settings.bounds.rates),
            teams=self.teams,
            forks=Forks(fork_ports),
            dropped=self._dropped,
            kept=self._kept,
            waiting=self.waiting,
            refusals=self.refusals,
        )
