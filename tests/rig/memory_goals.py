"""Goals on record and the queues in which they wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords, NatsTickets, NatsWorkQueue
from ioa.errors import UnavailableError
from ioa.protocol.goals import EndedGoal, Goal, GoalRecord
from ioa.protocol.ids import CommId, GoalName, PoolId
from ioa.protocol.setup.tickets import seal_of, ticket_of


class MemoryGoalRecords(NatsGoalRecords):
    """Records of goals for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._by_id: dict[CommId, GoalRecord] = {}
        self._numbers: dict[CommId, int] = {}

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Record a goal once."""
        return self._by_id.setdefault(record.goal.comm_id, record)

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Read the goal whose root group is `comm_id`."""
        return self._by_id.get(comm_id)

    async def oldest(self, *, after: int, limit: int) -> tuple[Sequence[GoalRecord], int | None]:
        """Read records after a number: the place of each in the list of all goals that were ever accepted."""
        for comm_id in self._by_id:
            self._numbers.setdefault(comm_id, len(self._numbers) + 1)
        found = [comm_id for comm_id in self._by_id if self._numbers[comm_id] > after]
        page = [self._by_id[comm_id] for comm_id in found[:limit]]
        return page, self._numbers[found[limit - 1]] if len(found) > limit else None

    async def remove(self, goal: GoalName) -> None:
        """Remove a record, as retention does."""
        self._by_id.pop(goal.comm_id, None)

    def all(self) -> Sequence[GoalRecord]:
        """Every record, in the order of acceptance."""
        return list(self._by_id.values())

    def lose(self) -> None:
        """Lose everything."""
        self._by_id.clear()


class MemoryEndedGoals(NatsEndedGoals):
    """`EndedGoals` for unit tests. False in this: they are lost with the process."""

    def __init__(self) -> None:
        self._ended: dict[CommId, EndedGoal] = {}

    async def put(self, ended: EndedGoal) -> None:
        """Keep the first word about a goal."""
        self._ended.setdefault(ended.name.comm_id, ended)

    async def find(self, goal: GoalName) -> EndedGoal | None:
        """Read it."""
        return self._ended.get(goal.comm_id)


class MemoryTickets(NatsTickets):
    """`Tickets` for unit tests. False in this: everybody knows the key."""

    key = b"known"

    def __init__(self) -> None:
        """Nothing to open."""

    async def of(self, goal: GoalName) -> str:
        """Make a goal's ticket."""
        return ticket_of(self.key, goal)

    async def seal(self, words: str) -> str:
        """Seal words."""
        return seal_of(self.key, words)


class MemoryWorkQueue(NatsWorkQueue):
    """`WorkQueue` for unit tests.

    False in this: nobody takes a goal, and none leaves it at its deadline; a test looks at what waits.
    """

    def __init__(self) -> None:
        self._waiting: dict[PoolId | None, dict[int, Goal]] = defaultdict(dict)
        self._last = 0
        self.taken: set[int] = set()
        """The numbers of what was taken."""
        self.tickets: dict[int, str | None] = {}
        """What each goal was put with."""
        self.pools: set[PoolId] = set()
        self.reachable = True
        """Set to False, nothing can be put until it is set to True again."""

    async def put(self, record: GoalRecord, pool: PoolId | None, ticket: str | None = None) -> int:
        """Keep the goal in its queue."""
        if not self.reachable:
            raise UnavailableError("The queue of goals is out of reach.")
        self._last += 1
        self._waiting[pool][self._last] = record.goal
        self.tickets[self._last] = ticket
        return self._last

    async def was_taken(self, pool: PoolId | None, seq: int) -> bool:
        """Look it up."""
        return seq in self.taken

    async def withdraw(self, seq: int) -> None:
        """Drop it, whichever queue it waits in."""
        for waiting in self._waiting.values():
            waiting.pop(seq, None)

    async def contains(self, seq: int) -> bool:
        """Return the waiting goals."""
        return any(seq in waiting for waiting in self._waiting.values())

    async def ensure_pool(self, pool: PoolId) -> None:
        """Remember the pool."""
        self.pools.add(pool)

    async def remove_pool(self, pool: PoolId) -> bool:
        """Forget the pool unless goals wait for it."""
        if self.waiting(pool):
            return False
        self.pools.discard(pool)
        return True

    def waiting(self, pool: PoolId | None = None) -> Sequence[Goal]:
        """Return the goals that were put for a pool, or for anybody, in order."""
        return list(self._waiting[pool].values())
