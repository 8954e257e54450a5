"""Stores of groups and goals, and the ledger on them, for group setup and the router."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.adapters.nats.delivery.delivery import NatsDeadLetters, NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords
from ioa.adapters.nats.stores.open_groups import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.wire.connection import Connection
from ioa.ports.clock import Clock
from ioa.ports.delivery import GoalRecords, Timers
from ioa.ports.group_log import GroupLog
from ioa.runtime.audit import AuditLog
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.recorded import RecordedDeadLetters, RecordedResults


@dataclass(frozen=True, kw_only=True)
class GroupStores:
    """Stores of groups and goals, over NATS or in the memory of a test. `ended` contains the ends of removed goals."""

    clock: Clock
    audit: AuditLog
    log: GroupLog
    ledger: GroupLedger
    goals: GoalRecords
    timers: Timers
    open_groups: NatsOpenGroups
    memberships: NatsMemberships
    sessions: NatsSessions
    results: RecordedResults
    ended: NatsEndedGoals
    dead: RecordedDeadLetters


def group_stores(
    client: Connection, clock: Clock, audit: AuditLog, settings: ControlPlaneSettings, router: str = ""
) -> GroupStores:
    """Return the stores over a connection.

    Args:
        client: The connection.
        clock: Time of entries.
        audit: Records the ends of goals, and dead letters.
        settings: Limits of each group.
        router: The router that members send to first; empty: any.
    """
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
