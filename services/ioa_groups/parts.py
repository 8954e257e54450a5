"""What group setup consists of, whatever keeps its data: `wiring` has it over NATS, the testkit in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from ioa.adapters.nats.goals import NatsWorkQueue
from ioa.adapters.nats.open_groups import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.retention import NatsEndedGoals, NatsGoalPages, NatsGoalRemoval
from ioa.adapters.nats.sessions import NatsSessions
from ioa.adapters.nats.storage import NatsStorage
from ioa.adapters.nats.teams import NatsTeams
from ioa.adapters.nats.tickets import NatsTickets
from ioa.ports.clock import Clock
from ioa.ports.delivery import DeadLetters, GoalRecords, Results, Timers
from ioa.ports.discovery import Discovery
from ioa.ports.file_store import FileStore
from ioa.ports.group_log import GroupLog
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import PoolId
from ioa.runtime.endings import Endings
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.store_share import StoreShare
from ioa_groups.files import FileQuotas, FileService
from ioa_groups.goal_retention import GoalRetention
from ioa_groups.intake import Intake
from ioa_groups.intake_ports import IntakePorts
from ioa_groups.leaders import Leaders
from ioa_groups.log_pages import LogPages
from ioa_groups.malformed_goals import MalformedGoals
from ioa_groups.membership import MembershipWatch
from ioa_groups.setup import GroupSetup, GroupSetupPorts, GroupTimeouts
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams


@dataclass(frozen=True, kw_only=True)
class GroupServicePorts:
    """What group setup as a whole works with.

    Attributes:
        clock: Stamps what is recorded.
        log: Where groups' entries are.
        ledger: Records them.
        goals: Goals on record.
        timers: Deadlines of goals.
        registry: Who is there.
        memberships: Who is in which group.
        open_groups: Goals and groups that have not ended.
        sessions: Which process of an agent holds its id.
        results: Results of goals.
        ended: Goals that have ended.
        endings: How a goal ended, wherever that stands.
        files: Files of agents and users.
        teams: Teams of users.
        dead: Keeps what cannot be accepted.
        work: Queues that agents take goals from.
        tickets: Issues what the leader of a goal has to show.
        casting: Finds who fills the roles of teams.
        leading: Finds who leads goals.
        pages: Goals, page by page.
        removal: Removes goals that are old.
        store: The store of all streams.
    """

    clock: Clock
    log: GroupLog
    ledger: GroupLedger
    goals: GoalRecords
    timers: Timers
    registry: RegistryView
    memberships: NatsMemberships
    open_groups: NatsOpenGroups
    sessions: NatsSessions
    results: Results
    ended: NatsEndedGoals
    endings: Endings
    files: FileStore
    teams: NatsTeams
    dead: DeadLetters
    work: NatsWorkQueue
    tickets: NatsTickets
    casting: Discovery
    leading: Discovery
    pages: NatsGoalPages
    removal: NatsGoalRemoval
    store: NatsStorage


@dataclass(frozen=True, kw_only=True)
class GroupServiceRules:
    """What group setup as a whole goes by.

    Attributes:
        timeouts: Those of groups.
        wait_for_agents: How long a goal waits for an agent that it names and that is not there.
        file_quotas: How much of files each may store.
        leading_pools: Pools that goals go to that name nobody; none: those that discovery finds.
        users_are_known: Whether the server says who publishes a goal.
    """

    timeouts: GroupTimeouts
    wait_for_agents: timedelta
    file_quotas: FileQuotas
    leading_pools: Sequence[PoolId] = ()
    users_are_known: bool = False


class GroupParts:
    """The parts of one replica, which are run or asked.

    Args:
        ports: What they work with.
        rules: What they go by.
        now: Monotonic clock, in seconds.
    """

    def __init__(self, ports: GroupServicePorts, rules: GroupServiceRules, now: Callable[[], float]) -> None:
        self.store = StoreShare(ports.store, now)
        self.teams = Teams(ports.teams, ports.clock, self.store)
        self.setup = _group_setup(ports, self.teams, rules.timeouts)
        self.log_pages = LogPages(
            ledger=ports.ledger,
            log=ports.log,
            goals=ports.goals,
            memberships=ports.memberships,
            open_groups=ports.open_groups,
            sessions=ports.sessions,
        )
        self.files = FileService(
            store=ports.files,
            ledger=ports.ledger,
            tickets=ports.tickets,
            clock=ports.clock,
            quotas=rules.file_quotas,
            sessions=ports.sessions,
        )
        self.leaders = Leaders(ports.leading, ports.work, ports.registry, ports.clock, rules.leading_pools)
        self.intake_ports = self._intake_ports(ports)
        self.intake = Intake(self.intake_ports, rules.wait_for_agents, users_are_known=rules.users_are_known)
        self.malformed_goals = MalformedGoals(ports.work, ports.dead)
        self.retention = GoalRetention(ports.pages, ports.results, ports.log, ports.ended, ports.removal, ports.clock)
        self.watch = MembershipWatch(ports.ledger, ports.registry, ports.memberships, ports.clock)

    def _intake_ports(self, ports: GroupServicePorts) -> IntakePorts:
        return IntakePorts(
            goals=ports.goals,
            work=ports.work,
            timers=ports.timers,
            files=self.files,
            dead=ports.dead,
            registry=ports.registry,
            open_groups=ports.open_groups,
            ledger=ports.ledger,
            endings=ports.endings,
            leaders=self.leaders,
            tickets=ports.tickets,
            clock=ports.clock,
            shares=PoolShares(ports.registry, ports.open_groups),
            teams=self.teams,
            store=self.store,
        )


def _group_setup(ports: GroupServicePorts, teams: Teams, timeouts: GroupTimeouts) -> GroupSetup:
    setup_ports = GroupSetupPorts(
        ledger=ports.ledger,
        log=ports.log,
        goals=ports.goals,
        registry=ports.registry,
        memberships=ports.memberships,
        open_groups=ports.open_groups,
        endings=ports.endings,
        clock=ports.clock,
        sessions=ports.sessions,
        teams=teams,
        casting=ports.casting,
    )
    return GroupSetup(setup_ports, timeouts)
