"""What retention needs, over the other fakes: what stays of goals, and removing the rest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ioa.adapters.nats.stores.agent_removal import NatsAgentRemoval
from ioa.adapters.nats.stores.goal_records import NatsEndedGoals
from ioa.errors import UnavailableError
from ioa.group.events import SubgroupOpened, files_of
from ioa.protocol.goals import EndedGoal, GoalRecord
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId
from ioa_groups.goal_removal import NatsGoalRemoval
from tests.rig.memory_delivery import MemoryResults, MemoryTimers
from tests.rig.memory_goals import MemoryGoalRecords, MemoryWorkQueue
from tests.rig.memory_log import MemoryGroupLog
from tests.rig.memory_open_groups import MemoryMemberships, MemoryOpenGroups
from tests.rig.memory_registry import MemoryCards, MemoryLeases


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


class MemoryGoalRemoval(NatsGoalRemoval):
    """`GoalRemoval` for unit tests. False in this: it fails only when told to."""

    def __init__(
        self,
        log: MemoryGroupLog,
        timers: MemoryTimers,
        memberships: MemoryMemberships,
        results: MemoryResults,
        goals: MemoryGoalRecords,
        open_groups: MemoryOpenGroups,
    ) -> None:
        self._log = log
        self._timers = timers
        self._memberships = memberships
        self._results = results
        self._goals = goals
        self._open_groups = open_groups
        self._numbers: dict[CommId, int] = {}
        self.steps_left: int | None = None
        """How many more removals work; then all fail until this is None again."""

        self.poisoned: set[CommId] = set()
        """Groups whose logs cannot be removed, by an error that nobody expects."""

    async def oldest(self, *, after: int, limit: int) -> tuple[Sequence[GoalRecord], int | None]:
        """Read records after a number: the place of each in the list of all goals that were ever accepted."""
        found = [one for one in self._goals.all() if self._number(one) > after]
        return found[:limit], self._number(found[limit - 1]) if len(found) > limit else None

    def _number(self, record: GoalRecord) -> int:
        return self._numbers.setdefault(record.goal.comm_id, len(self._numbers) + 1)

    async def belongings(self, comm_id: CommId) -> tuple[list[CommId], set[str]]:
        """Read what the log names."""
        events = [stored.entry.event for stored in await self._log.read(comm_id, after=0, limit=1_000_000)]
        nested = [event.subgroup for event in events if isinstance(event, SubgroupOpened)]
        return nested, {file.object_name for event in events for file in files_of(event)}

    async def remove_group(self, comm_id: CommId) -> None:
        """Remove a group's data, its log last."""
        self._step()
        self._timers.remove(comm_id)
        self._step()
        for agent_id in self._memberships.agents():
            await self._memberships.remove(agent_id, comm_id)
        self._step()
        await self._open_groups.remove(comm_id)
        self._step()
        if comm_id in self.poisoned:
            raise ValueError(f"The log of {comm_id} is poisoned.")
        self._log.remove(comm_id)

    async def remove_goal(self, goal: GoalName) -> None:
        """Remove a goal's result, and then its record."""
        self._step()
        self._results.remove(goal)
        self._step()
        self._goals.remove(goal.comm_id)

    def _step(self) -> None:
        if self.steps_left is not None:
            if self.steps_left == 0:
                raise UnavailableError("Nothing can be removed now.")
            self.steps_left -= 1


class MemoryAgentRemoval(NatsAgentRemoval):
    """`AgentRemoval` for unit tests. False in this: nobody who follows the stores is told."""

    def __init__(self, cards: MemoryCards, leases: MemoryLeases, work: MemoryWorkQueue) -> None:
        self._cards = cards
        self._leases = leases
        self._work = work

    async def last_renewal(self, agent_id: AgentId) -> datetime | None:
        """When the lease was last written."""
        return self._leases.heard_at(agent_id)

    async def remove_agent(self, agent_id: AgentId) -> None:
        """Remove card and lease."""
        self._cards.records.pop(agent_id, None)
        self._leases.forget(agent_id)

    async def remove_queue(self, pool: PoolId) -> bool:
        """Forget the pool unless goals wait for it."""
        if self._work.waiting(pool):
            return False
        self._work.pools.discard(pool)
        return True
