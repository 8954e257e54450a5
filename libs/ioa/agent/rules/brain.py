"""The rule brain: `ioa.ports.brain.Brain` without a model."""

from __future__ import annotations

from ioa.agent.rules.matching import DEFAULT_THRESHOLD
from ioa.agent.rules.merging import conclude
from ioa.agent.rules.nesting import approach
from ioa.agent.rules.planning import plan_goal
from ioa.agent.rules.turns import next_utterance
from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskView, Team, TeamTools, Utterance
from ioa.protocol.messages import Conclusion


class RuleBrain:
    """Split a goal into needs, match them by discovery, assign, pause and merge. Holds no state.

    Args:
        threshold: The least similarity, -1 to 1, of an agent that fits a need; it belongs to the embedding model in use.
    """

    def __init__(self, threshold: float = DEFAULT_THRESHOLD) -> None:
        self._threshold = threshold

    async def form_team(self, mission: Mission, tools: TeamTools) -> Team | NobodyFits:
        """Find agents for all needs of a goal with one search.

        Raises:
            UnavailableError: Discovery does not answer.
        """
        return await plan_goal(mission, tools, self._threshold)

    async def speak(self, view: GroupView) -> Utterance:
        """Hand out what is ready, pause on what is open, or conclude."""
        return next_utterance(view)

    async def conclude(self, view: GroupView) -> Conclusion:
        """Merge the results in the plan's order."""
        return conclude(view)

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | Team:
        """Do a task alone in words that stand on their own, or open a nested team for its parts."""
        return await approach(task, tools, self._threshold)
