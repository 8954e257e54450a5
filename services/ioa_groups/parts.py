"""Construction of a replica of group setup: its parts, and its stores over NATS."""

from __future__ import annotations

from ioa.adapters.nats.requests.request import NatsDiscovery
from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsTickets, NatsWorkQueue
from ioa.adapters.nats.stores.registry_view import NatsRegistryView
from ioa.adapters.nats.stores.teams import NatsTeams
from ioa.adapters.nats.streams.stream_stats import NatsStorage
from ioa.adapters.nats.streams.topology import FILES, Shares
from ioa.adapters.nats.wire.connection import Connection
from ioa.ports.delivery import DeadLetters
from ioa.runtime.control_plane import ControlPlaneSettings
from ioa.runtime.group_stores import GroupStores
from ioa.runtime.store_share import StoreShare
from ioa_groups.casting import CAST_WITHIN
from ioa_groups.files import FileQuotas, FileService
from ioa_groups.goal_orders import UnreadGoals
from ioa_groups.goal_removal import NatsGoalRemoval
from ioa_groups.goal_retention import GoalRetention
from ioa_groups.group_ports import GroupServicePorts
from ioa_groups.intake import Intake
from ioa_groups.leaders import ANSWERED_WITHIN, Leaders
from ioa_groups.log_pages import LogPages
from ioa_groups.membership import MembershipWatch
from ioa_groups.offering import Offering
from ioa_groups.setup import GroupSetup
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams


class GroupParts:
    """Parts of a replica of group setup.

    Args:
        ports: Stores and services.
        settings: Settings of the process.
        shares: Maximum bytes of the store and its streams; None: no limit is known.
    """

    def __init__(self, ports: GroupServicePorts, settings: ControlPlaneSettings, shares: Shares | None = None) -> None:
        self.ports = ports
        quotas = FileQuotas(settings.agent_files_bytes, settings.user_files_bytes)
        self.store = StoreShare(ports.store)
        self.teams = Teams(ports.teams, ports.clock, self.store)
        self.setup = GroupSetup(ports, self.teams, settings)
        self.log_pages = LogPages(ports)
        self.files = FileService(ports, quotas if shares is None else quotas.within(shares.by_stream()[f"OBJ_{FILES}"]))
        self.leaders = Leaders(ports.leading, ports.work, ports.registry, ports.clock, settings.leading_pools)
        self.intake = self.make_intake(ports, users_are_known=settings.has_own_key)
        self.retention = GoalRetention(ports)
        self.watch = MembershipWatch(ports.ledger, ports.registry, ports.memberships, ports.clock)

    def make_intake(self, ports: GroupServicePorts, *, users_are_known: bool) -> Intake:
        """Return an intake that shares the other parts of this replica."""
        shares = PoolShares(ports.registry, ports.open_groups) if users_are_known else None
        return Intake(
            ports, Offering(ports, self.leaders, shares), self.files, self.teams, self.store, users_are_known=users_are_known
        )


def nats_ports(
    client: Connection,
    carrier: Connection,
    settings: ControlPlaneSettings,
    stores: GroupStores,
    registry: NatsRegistryView,
    dead: DeadLetters,
    shares: Shares | None,
) -> GroupServicePorts:
    """Return stores and services over NATS; `carrier` is a connection for files, so that no request waits for pieces of files."""
    return GroupServicePorts(
        **vars(stores),
        registry=registry,
        files=NatsFileStore(carrier),
        teams=NatsTeams(client),
        dead=dead,
        work=NatsWorkQueue(client),
        tickets=NatsTickets(client),
        casting=NatsDiscovery(client, CAST_WITHIN),
        leading=NatsDiscovery(client, ANSWERED_WITHIN),
        removal=NatsGoalRemoval(client),
        store=NatsStorage(client, shares, settings.replicas),
        unread=UnreadGoals(client),
    )
