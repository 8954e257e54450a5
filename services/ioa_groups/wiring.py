"""Group setup over NATS; `__main__` runs it."""

from __future__ import annotations

import time

from ioa.adapters.nats.delivery.delivery import NatsDeadLetters
from ioa.adapters.nats.delivery.goal_orders import UnreadGoals
from ioa.adapters.nats.delivery.server_clock import NatsClock
from ioa.adapters.nats.requests.discovery_client import NatsDiscovery
from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsGoalRecords, NatsWorkQueue
from ioa.adapters.nats.stores.group_setup_key import NatsTickets
from ioa.adapters.nats.stores.open_groups import NatsMemberships
from ioa.adapters.nats.stores.registry_view import NatsRegistryView
from ioa.adapters.nats.stores.teams import NatsTeams
from ioa.adapters.nats.streams.retention import NatsGoalPages, NatsGoalRemoval
from ioa.adapters.nats.streams.storage_usage import NatsStorage
from ioa.adapters.nats.streams.topology import Shares
from ioa.adapters.nats.wire.connection import Connection
from ioa.runtime.audit import AuditedDeadLetters, AuditedGoalRecords, AuditLog
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.goal_metrics import CountedDeadLetters
from ioa.runtime.group_stores import group_stores
from ioa_groups.casting import CAST_WITHIN
from ioa_groups.files import FileQuotas
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.leaders import ANSWERED_WITHIN
from ioa_groups.parts import GroupParts, GroupServiceRules
from ioa_groups.setup import GroupTimeouts


class NatsGroupServices(GroupParts):
    """Parts of a replica over NATS.

    Args:
        client: Connection for requests and stores.
        carrier: Connection for files, so that no request waits for pieces of files.
        settings: Settings of the process.
        clock: Time of entries and records.
        audit: Audit log.
        shares: Maximum bytes of the store and its streams; None: no limit is known.
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
        js = client.jetstream()
        self.dead = AuditedDeadLetters(CountedDeadLetters(NatsDeadLetters(js)), audit)
        self.stores = group_stores(client, clock, AuditedGoalRecords(NatsGoalRecords(js), audit), self.dead, audit)
        self.registry, self.tickets = NatsRegistryView(client, settings.lease), NatsTickets(js)
        self.ledger = self.stores.ledger(settings)
        ports = GroupServicePorts(
            clock=clock,
            log=self.stores.log,
            ledger=self.ledger,
            goals=self.stores.goals,
            timers=self.stores.timers,
            registry=self.registry,
            memberships=NatsMemberships(client),
            open_groups=self.stores.open_groups,
            sessions=self.stores.sessions,
            results=self.stores.results,
            ended=self.stores.ended,
            endings=self.stores.endings,
            files=NatsFileStore(carrier),
            teams=NatsTeams(client),
            dead=self.dead,
            work=NatsWorkQueue(js),
            tickets=self.tickets,
            casting=NatsDiscovery(client, CAST_WITHIN),
            leading=NatsDiscovery(client, ANSWERED_WITHIN),
            pages=NatsGoalPages(client),
            removal=NatsGoalRemoval(client),
            store=NatsStorage(client, shares, settings.replicas),
            unread=UnreadGoals(client),
        )
        super().__init__(ports, _rules(settings, shares), time.monotonic)
        self.registry.listen_for_losses(self.watch.notice)


def _rules(settings: ControlPlaneSettings, shares: Shares | None) -> GroupServiceRules:
    timeouts = GroupTimeouts(
        max_depth=settings.max_depth,
        floor_timeout=settings.floor_timeout,
        task_lease=settings.task_lease,
        pause_timeout=settings.pause_timeout,
        conclusion_timeout=settings.conclusion_timeout,
        model_patience=settings.model_patience,
        patience=settings.patience,
    )
    quotas = FileQuotas(settings.agent_files_bytes, settings.user_files_bytes)
    return GroupServiceRules(
        timeouts=timeouts,
        wait_for_agents=settings.lease,
        file_quotas=quotas if shares is None else quotas.within(shares.files),
        leading_pools=settings.leading_pools,
        users_are_known=settings.has_own_key,
    )
