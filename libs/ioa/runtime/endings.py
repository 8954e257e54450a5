"""How goals ended, whether all that belongs to them is still kept or not: nothing ever happens to a goal that has ended."""

from __future__ import annotations

from ioa.adapters.nats.streams.retention import NatsEndedGoals
from ioa.ports.delivery import Results
from ioa.protocol.goals import EndedGoal, Ending, ending_of
from ioa.protocol.ids import GoalName


class Endings:
    """Asks the results, and then what stays of goals that were removed."""

    def __init__(self, results: Results, removed: NatsEndedGoals) -> None:
        self._results = results
        self._removed = removed

    async def of(self, goal: GoalName) -> Ending | None:
        """How a goal ended; None while it has not.

        Whoever finds a group's log empty and asks afterwards learns of every ending: what stays of a goal is written before
        anything of it is removed.
        """
        result = await self._results.get(goal)
        if result is not None:
            return Ending(result.reason, result.finished_at)
        return ending_of(await self.removed(goal))

    async def removed(self, goal: GoalName) -> EndedGoal | None:
        """Return what stays of a goal that was removed."""
        return await self._removed.find(goal)
