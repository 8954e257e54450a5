"""How goals ended, also goals whose data was removed. A goal that has ended keeps its end."""

from __future__ import annotations

from ioa.adapters.nats.stores.goal_records import NatsEndedGoals
from ioa.ports.delivery import Results
from ioa.protocol.goals import Ending, ending_of
from ioa.protocol.ids import GoalName


class Endings:
    """Read the results, and then the ends of removed goals."""

    def __init__(self, results: Results, removed: NatsEndedGoals) -> None:
        self._results = results
        self._removed = removed

    async def of(self, goal: GoalName) -> Ending | None:
        """Return how a goal ended; None if it is open.

        The end of a goal is stored before its data is removed, so a caller that finds an empty log reads the end afterwards.
        """
        result = await self._results.get(goal)
        if result is not None:
            return Ending(result.reason, result.finished_at)
        return ending_of(await self._removed.find(goal))
