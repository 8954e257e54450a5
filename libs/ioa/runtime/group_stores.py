"""Stores of groups and goals, and the ledger on them, for group setup and the router."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.adapters.nats.delivery.delivery import NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.stores.goal_records import NatsEndedGoals
from ioa.adapters.nats.stores.open_groups import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.wire.connection import Connection
from ioa.ports.clock import Clock
from ioa.ports.delivery import DeadLetters, GoalRecords, Results, Timers
from ioa.ports.group_log import GroupLog
from ioa.runtime.audit import AuditLog
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.endings import Endings
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.recorded import RecordedResults
from ioa.runtime.unreadable import UnreadableEntries


@dataclass(frozen=True, kw_only=True)
class GroupStores:
    """Stores of groups and goals, over NATS or in the memory of a test.

    Attributes:
        ended: Ends of removed goals.
        endings: Ends of goals: results, and `ended`.
    """

    clock: Clock
    log: GroupLog
    ledger: GroupLedger
    goals: GoalRecords
    timers: Timers
    open_groups: NatsOpenGroups
    memberships: NatsMemberships
    sessions: NatsSessions
    results: Results
    ended: NatsEndedGoals
    endings: Endings


def group_stores(
    client: Connection,
    clock: Clock,
    goals: GoalRecords,
    dead: DeadLetters,
    audit: AuditLog,
    settings: ControlPlaneSettings,
    router: str = "",
) -> GroupStores:
    """Return the stores over a connection.

    Args:
        client: The connection.
        clock: Time of entries.
        goals: Records of goals.
        dead: Gets a copy of each unreadable entry.
        audit: Records the ends of goals.
        settings: Limits of each group.
        router: The router that members send to first; empty: any.
    """
    sessions, open_groups, timers = NatsSessions(client), NatsOpenGroups(client), NatsTimers(client)
    results, ended = RecordedResults(NatsResults(client), goals, audit), NatsEndedGoals(client)
    log, inboxes = NatsGroupLog(client, UnreadableEntries(dead).note), NatsInboxes(client, sessions.find_inbox, router)
    return GroupStores(
        clock=clock,
        log=log,
        ledger=GroupLedger(log, timers, inboxes, results, open_groups, clock, settings.group_limits),
        goals=goals,
        timers=timers,
        open_groups=open_groups,
        memberships=NatsMemberships(client),
        sessions=sessions,
        results=results,
        ended=ended,
        endings=Endings(results, ended),
    )
