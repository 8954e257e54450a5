"""Stores and services of group setup: over NATS in `parts`, in memory in tests."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsTickets, NatsWorkQueue
from ioa.adapters.nats.stores.teams import NatsTeams
from ioa.adapters.nats.streams.stream_stats import NatsStorage
from ioa.ports.delivery import DeadLetters
from ioa.ports.discovery import Discovery
from ioa.ports.registry_view import RegistryView
from ioa.runtime.group_stores import GroupStores
from ioa_groups.goal_orders import UnreadGoals
from ioa_groups.goal_removal import NatsGoalRemoval


@dataclass(frozen=True, kw_only=True)
class GroupServicePorts(GroupStores):
    """Stores and services of group setup.

    Attributes:
        tickets: HMACs with the secret key of group setup.
        casting: Discovery for the roles of teams.
        leading: Discovery for leaders of goals.
        store: Use of the store of all streams.
        unread: Goals that intake has not read yet.
    """

    registry: RegistryView
    files: NatsFileStore
    teams: NatsTeams
    dead: DeadLetters
    work: NatsWorkQueue
    tickets: NatsTickets
    casting: Discovery
    leading: Discovery
    removal: NatsGoalRemoval
    store: NatsStorage
    unread: UnreadGoals
