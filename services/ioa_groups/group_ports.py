"""Stores and services of group setup: over NATS, or in the memory of a test."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsTickets, NatsWorkQueue
from ioa.adapters.nats.stores.team_store import NatsTeams
from ioa.ports.discovery import Discovery
from ioa.ports.registry_view import RegistryView
from ioa.runtime.group_stores import GroupStores
from ioa.runtime.store_share import StoreShare
from ioa_groups.goal_orders import UnreadGoals


@dataclass(frozen=True, kw_only=True)
class GroupServicePorts(GroupStores):
    """Stores and services of group setup.

    Attributes:
        tickets: HMACs with the secret key of group setup.
        casting: Discovery for the roles of teams.
        leading: Discovery for leaders of goals.
        store: The rule that rejects new goals while the store is full.
        unread: Goals that intake has not read yet.
    """

    registry: RegistryView
    files: NatsFileStore
    teams: NatsTeams
    work: NatsWorkQueue
    tickets: NatsTickets
    casting: Discovery
    leading: Discovery
    store: StoreShare
    unread: UnreadGoals
