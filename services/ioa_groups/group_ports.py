"""Stores and services of group setup: over NATS, or in the memory of a test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from ioa.adapters.nats.requests.request import NatsDiscovery
from ioa.adapters.nats.stores.goal_files import NatsFileStore
from ioa.adapters.nats.stores.goal_records import NatsTickets, NatsWorkQueue
from ioa.adapters.nats.stores.registry_view import NatsRegistryView
from ioa.adapters.nats.stores.teams import NatsTeams
from ioa.adapters.nats.streams.stream_stats import NatsStorage
from ioa.adapters.nats.wire.connection import Connection
from ioa.runtime.group_stores import GroupStores
from ioa_groups.goal_orders import UnreadGoals

_CAST_TIMEOUT, _LEADER_TIMEOUT = timedelta(seconds=3), timedelta(seconds=1)
"""Timeouts of a search for the roles of a task's team, and of a search for a leader, after which any agent may take the goal."""


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

    registry: NatsRegistryView
    files: NatsFileStore
    teams: NatsTeams
    work: NatsWorkQueue
    tickets: NatsTickets
    casting: NatsDiscovery
    leading: NatsDiscovery
    store: NatsStorage
    unread: UnreadGoals

    @classmethod
    def over_nats(
        cls,
        client: Connection,
        data: Connection,
        stores: GroupStores,
        registry: NatsRegistryView,
        store: NatsStorage,
    ) -> Self:
        """Return stores and services over NATS; pieces of files are carried by `data`."""
        return cls(
            **vars(stores),
            registry=registry,
            files=NatsFileStore(data),
            teams=NatsTeams(client),
            work=NatsWorkQueue(client),
            tickets=NatsTickets(client),
            casting=NatsDiscovery(client, _CAST_TIMEOUT),
            leading=NatsDiscovery(client, _LEADER_TIMEOUT),
            store=store,
            unread=UnreadGoals(client),
        )
