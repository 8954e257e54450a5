"""What goals are taken in and offered with."""

from __future__ import annotations

from dataclasses import dataclass

from ioa.adapters.nats.goals import NatsWorkQueue
from ioa.adapters.nats.open_groups import NatsOpenGroups
from ioa.adapters.nats.tickets import NatsTickets
from ioa.ports.clock import Clock
from ioa.ports.delivery import DeadLetters, GoalRecords, Timers
from ioa.ports.registry_view import RegistryView
from ioa.runtime.endings import Endings
from ioa.runtime.ledger import GroupLedger
from ioa.runtime.store_share import StoreShare
from ioa_groups.files import FileService
from ioa_groups.leaders import Leaders
from ioa_groups.shares import PoolShares
from ioa_groups.teams import Teams


@dataclass(frozen=True, kw_only=True)
class IntakePorts:
    """What goals are taken in and offered with.

    Attributes:
        goals: Goals on record.
        work: Queues that agents take goals from.
        timers: Deadlines of goals.
        files: Stores inputs, and checks those that are there.
        dead: Keeps what cannot be accepted.
        registry: Agents and pools that a goal may name.
        open_groups: Goals and groups that have not ended.
        ledger: Ends a goal that nobody can lead.
        endings: Goals that have ended, however long ago.
        leaders: Chooses the pool for a goal that names nobody.
        tickets: Issues what the leader of a goal has to show.
        clock: Stamps records and events.
        shares: Bounds what one user has waiting at a pool.
        teams: Teams that goals name.
        store: Rejects new goals while the store is full.
    """

    goals: GoalRecords
    work: NatsWorkQueue
    timers: Timers
    files: FileService
    dead: DeadLetters
    registry: RegistryView
    open_groups: NatsOpenGroups
    ledger: GroupLedger
    endings: Endings
    leaders: Leaders
    tickets: NatsTickets
    clock: Clock
    shares: PoolShares
    teams: Teams
    store: StoreShare
