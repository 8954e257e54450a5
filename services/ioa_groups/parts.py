"""Construction of a replica of group setup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from ioa.protocol.ids import PoolId
from ioa.runtime.store_share import StoreShare
from ioa_groups.files import FileQuotas, FileService
from ioa_groups.goal_retention import GoalRetention
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.intake import Intake
from ioa_groups.leaders import Leaders
from ioa_groups.log_pages import LogPages
from ioa_groups.membership import MembershipWatch
from ioa_groups.offering import Offering
from ioa_groups.setup import GroupSetup, GroupTimeouts
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams


@dataclass(frozen=True, kw_only=True)
class GroupServiceRules:
    """Settings of group setup.

    Attributes:
        timeouts: Timeouts of new groups.
        wait_for_agents: Maximum time that a goal waits for an addressee that has not registered.
        file_quotas: Maximum stored bytes per owner.
        leading_pools: Pools that lead goals without an addressee. Empty: discovery finds the pool.
        users_are_known: Whether nats-server checks the user who publishes a goal.
    """

    timeouts: GroupTimeouts
    wait_for_agents: timedelta
    file_quotas: FileQuotas
    leading_pools: Sequence[PoolId] = ()
    users_are_known: bool = False


class GroupParts:
    """Parts of a replica of group setup.

    Args:
        ports: Stores and services.
        rules: Settings.
        now: Monotonic clock, in seconds.
    """

    def __init__(self, ports: GroupServicePorts, rules: GroupServiceRules, now: Callable[[], float]) -> None:
        self.ports = ports
        self._rules = rules
        self.store = StoreShare(ports.store, now)
        self.teams = Teams(ports.teams, ports.clock, self.store)
        self.setup = GroupSetup(ports, self.teams, rules.timeouts)
        self.log_pages = LogPages(ports)
        self.files = FileService(ports, rules.file_quotas)
        self.leaders = Leaders(ports.leading, ports.work, ports.registry, ports.clock, rules.leading_pools)
        self.intake = self.make_intake(ports, users_are_known=rules.users_are_known)
        self.retention = GoalRetention(ports.pages, ports.results, ports.log, ports.ended, ports.removal, ports.clock)
        self.watch = MembershipWatch(ports.ledger, ports.registry, ports.memberships, ports.clock)

    def make_intake(self, ports: GroupServicePorts, *, users_are_known: bool) -> Intake:
        """Return an intake that shares the other parts of this replica."""
        shares = PoolShares(ports.registry, ports.open_groups) if users_are_known else None
        offering = Offering(ports, self.leaders, shares, self._rules.wait_for_agents)
        return Intake(ports, offering, self.files, self.teams, self.store, users_are_known=users_are_known)
