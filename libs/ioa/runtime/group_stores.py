"""Stores of groups over NATS, and the ledger on them, for group setup and the router."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.adapters.nats.delivery.delivery import NatsInboxes, NatsResults, NatsTimers
from ioa.adapters.nats.delivery.server_clock import NatsClock
from ioa.adapters.nats.stores.goal_records import NatsEndedGoals
from ioa.adapters.nats.stores.open_groups import NatsOpenGroups
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.adapters.nats.streams.group_log import NatsGroupLog
from ioa.adapters.nats.wire.connection import Connection
from ioa.ports.delivery import DeadLetters, GoalRecords
from ioa.runtime.audit import AuditLog
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.endings import Endings
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.recorded import RecordedResults
from ioa.runtime.unreadable import UnreadableEntries


@dataclass(frozen=True)
class GroupStores:
    """Stores of groups and goals."""

    clock: NatsClock
    log: NatsGroupLog
    goals: GoalRecords
    timers: NatsTimers
    open_groups: NatsOpenGroups
    sessions: NatsSessions
    inboxes: NatsInboxes
    results: RecordedResults
    ended: NatsEndedGoals
    endings: Endings

    def ledger(self, settings: ControlPlaneSettings) -> GroupLedger:
        """Return the ledger of this process."""
        return GroupLedger(
            log=self.log,
            timers=self.timers,
            inboxes=self.inboxes,
            results=self.results,
            open_groups=self.open_groups,
            clock=self.clock,
            limits=settings.group_limits,
        )


def group_stores(
    client: Connection, clock: NatsClock, goals: GoalRecords, dead: DeadLetters, audit: AuditLog, router: str = ""
) -> GroupStores:
    """Return the stores over a connection.

    Args:
        client: The connection.
        clock: Time of entries.
        goals: Records of goals.
        dead: Gets a copy of each unreadable entry.
        audit: Records the ends of goals.
        router: The router that members send to first; empty: any.
    """
    sessions = NatsSessions(client)
    results, ended = RecordedResults(NatsResults(client), goals, audit), NatsEndedGoals(client)
    return GroupStores(
        clock=clock,
        log=NatsGroupLog(client, UnreadableEntries(dead).note),
        goals=goals,
        timers=NatsTimers(client),
        open_groups=NatsOpenGroups(client),
        sessions=sessions,
        inboxes=NatsInboxes(client, sessions.find_inbox, router),
        results=results,
        ended=ended,
        endings=Endings(results, ended),
    )
