"""Stores of groups and goals, and the ledger on them, for group setup and the router."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ioa.adapters.nats.delivery.nats_delivery import NatsDeadLetters, NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.delivery.server_clock import open_nats_clock
from ioa.adapters.nats.stores.audit_stream import NatsAuditSink
from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords
from ioa.adapters.nats.stores.open_group_store import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.nats_group_log import NatsGroupLog
from ioa.adapters.nats.streams.topology import Shares
from ioa.adapters.nats.wire.connection import Connection, open_connection
from ioa.adapters.nats.wire.subscriptions import at_renewal
from ioa.concurrency import beside
from ioa.ports.clock import Clock
from ioa.ports.delivery import Timers
from ioa.ports.group_log import GroupLog
from ioa.runtime.audit_log import AuditLog, open_audit_log
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.recorded import RecordedDeadLetters, RecordedResults


@dataclass(frozen=True, kw_only=True)
class GroupStores:
    """Stores of groups and goals, over NATS or in the memory of a test. `ended` contains the ends of removed goals."""

    clock: Clock
    audit: AuditLog
    log: GroupLog
    ledger: GroupLedger
    goals: NatsGoalRecords
    timers: Timers
    open_groups: NatsOpenGroups
    memberships: NatsMemberships
    sessions: NatsSessions
    results: RecordedResults
    ended: NatsEndedGoals
    dead: RecordedDeadLetters


@asynccontextmanager
async def open_group_stores(
    settings: ControlPlaneSettings, service: str, router: str = ""
) -> AsyncIterator[tuple[Connection, GroupStores, Shares | None]]:
    """Connect a service, and yield its connection, its stores, which are followed while the block runs, and the shares of streams.

    Args:
        settings: Settings of the process.
        service: Name of the service in connections and the audit log.
        router: The router that members send to first; empty: any.
    """
    async with open_connection(settings.nats(f"ioa-{service}")) as client, open_topology(client, settings) as shares:
        clock = await open_nats_clock(client)
        async with open_audit_log(NatsAuditSink(client), clock, service) as audit:
            stores = _group_stores(client, clock, audit, settings, router)
            with at_renewal(client, stores.ledger.forget):
                async with beside(stores.sessions.follow(), clock.follow()):
                    await stores.sessions.whole()
                    yield client, stores, shares


def _group_stores(client: Connection, clock: Clock, audit: AuditLog, settings: ControlPlaneSettings, router: str) -> GroupStores:
    sessions, open_groups, timers = NatsSessions(client), NatsOpenGroups(client), NatsTimers(client)
    goals, ended, dead = NatsGoalRecords(client), NatsEndedGoals(client), RecordedDeadLetters(NatsDeadLetters(client), audit)
    results = RecordedResults(NatsResults(client), ended, goals, audit)
    log, inboxes = NatsGroupLog(client, dead.put_unreadable), NatsInboxes(client, sessions.find_inbox, router)
    return GroupStores(
        clock=clock,
        audit=audit,
        log=log,
        ledger=GroupLedger(log, timers, inboxes, results, open_groups, clock, settings.group_limits),
        goals=goals,
        timers=timers,
        open_groups=open_groups,
        memberships=NatsMemberships(client),
        sessions=sessions,
        results=results,
        ended=ended,
        dead=dead,
    )
