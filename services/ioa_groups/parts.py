"""The parts of a replica of group setup."""

from __future__ import annotations

import sys

from ioa.adapters.nats.streams.topology import FILES, Shares
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa_groups.goal_retention import GoalRetention
from ioa_groups.group_files import FileService
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.intake import Intake
from ioa_groups.log_pages import LogPages
from ioa_groups.member_changes import MembershipWatch
from ioa_groups.named_teams import Teams
from ioa_groups.offering import Offering
from ioa_groups.setup import GroupSetup
from ioa_groups.shares import PoolShares


class GroupParts:
    """Parts of a replica of group setup.

    Args:
        ports: Stores and services.
        settings: Settings of the process.
        shares: Maximum bytes of the store and its streams; None: no limit is known.
    """

    def __init__(self, ports: GroupServicePorts, settings: ControlPlaneSettings, shares: Shares | None = None) -> None:
        self.ports = ports
        most = sys.maxsize if shares is None else shares.by_stream()[f"OBJ_{FILES}"] // 2  # half of the files stays for others
        self.teams = Teams(ports.teams, ports.clock, ports.store)
        self.setup = GroupSetup(ports, self.teams, settings)
        self.log_pages = LogPages(ports)
        self.files = FileService(ports, min(settings.agent_files_bytes, most), min(settings.user_files_bytes, most))
        self.retention = GoalRetention(ports)
        self.watch = MembershipWatch(ports)
        is_known = settings.has_own_key
        shares_of_users = PoolShares(ports.registry, ports.open_groups) if is_known else None
        offering = Offering(ports, settings.leading_pools, shares_of_users)
        self.intake = Intake(ports, offering, self.files, self.teams, ports.store, users_are_known=is_known)
