"""Goals on record and the queues in which they wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ioa.errors import UnavailableError
from ioa.protocol.goals import Goal, GoalRecord
from ioa.protocol.ids import CommId, PoolId, comm_id_of_goal


class MemoryGoalRecords:
    """`GoalRecords` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._records: dict[CommId, GoalRecord] = {}

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Record a goal once."""
        return self._records.setdefault(comm_id_of_goal(record.goal.goal_id), record)

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Read the goal whose root group is `comm_id`."""
        return self._records.get(comm_id)

    async def goals(self) -> Sequence[GoalRecord]:
        """List all goals, oldest first."""
        return sorted(self._records.values(), key=lambda record: record.accepted_at)

    async def comm_ids(self) -> Sequence[CommId]:
        """List the root groups of all goals."""
        return list(self._records)


class MemoryWorkQueue:
    """`WorkQueue` for unit tests. False in this: nobody takes a goal; a test looks at what waits."""

    def __init__(self) -> None:
        self._waiting: dict[PoolId | None, list[Goal]] = defaultdict(list)
        self.pools: set[PoolId] = set()
        self.reachable = True
        """Set to False, nothing can be put until it is set to True again."""

    async def put(self, goal: Goal, pool: PoolId | None) -> None:
        """Keep the goal in its queue."""
        if not self.reachable:
            raise UnavailableError("The queue of goals is out of reach.")
        self._waiting[pool].append(goal)

    async def ensure_pool(self, pool: PoolId) -> None:
        """Remember the pool."""
        self.pools.add(pool)

    def waiting(self, pool: PoolId | None = None) -> Sequence[Goal]:
        """The goals that were put for a pool, or for anybody, in order."""
        return list(self._waiting[pool])
