"""The rule brain: `ioa.ports.brain.Brain` without a model.

Rules read what strangers wrote, on the event loop. So they read no more than a few paragraphs, by means that take time in
proportion to the text: `tests/unit/patterns` tries every expression.
"""

from __future__ import annotations

from dataclasses import replace

from ioa.agent.rules.matching import DEFAULT_THRESHOLD
from ioa.agent.rules.merging import conclude, conclude_course
from ioa.agent.rules.nesting import approach
from ioa.agent.rules.planning import plan_goal, task_id_of
from ioa.agent.rules.team_plan import team_of_needs
from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS
from ioa.agent.rules.turns import next_utterance
from ioa.errors import PayloadTooLargeError
from ioa.group.state import Gathering, PlannedTask
from ioa.ports.brain import Alone, GroupView, Mission, NobodyFits, TaskView, TeamLaunch, TeamTools, Utterance
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.messages import Conclusion, Pass, PassCause
from ioa.protocol.team import TeamSpec

_RULES = DecidedBy(kind="rules")


class RuleBrain:
    """Split a goal into needs, match them by discovery, assign, pause and merge. Holds no state.

    Args:
        threshold: The least similarity, -1 to 1, of an agent that fits a need; it belongs to the embedding model in use.
    """

    def __init__(self, threshold: float = DEFAULT_THRESHOLD) -> None:
        self._threshold = threshold

    async def form_team(self, mission: Mission, tools: TeamTools) -> TeamLaunch | NobodyFits:
        """Find agents for all needs of a goal with one search.

        Raises:
            PayloadTooLargeError: The goal is longer than what rules read.
            UnavailableError: Discovery does not answer.
        """
        mission.meter.decided_by = _RULES
        if len(mission.text) > MAX_READ_CHARS:
            raise PayloadTooLargeError(
                f"The goal has {len(mission.text):,} characters, and without a model agents read up to {MAX_READ_CHARS:,}.",
                hint="Say in a few sentences what is wanted and send the rest as a file, or set a model (IOA_LLM_MODEL).",
            )
        return await plan_goal(mission, tools, self._threshold)

    async def plan(self, mission: Mission, _tools: TeamTools) -> TeamSpec | None:
        """Plan a team of the goal's needs; None for a single one."""
        mission.meter.decided_by = _RULES
        return team_of_needs(mission.text)

    async def speak(self, view: GroupView) -> Utterance:
        """Hand out what is ready, pause on what is open, or conclude; rules have no answer to who asks several at once."""
        view.meter.decided_by = _RULES
        if isinstance(view.state.stage, Gathering):
            return Pass(cause=PassCause.NOTHING_TO_ADD)
        return next_utterance(_legible(view))

    async def conclude(self, view: GroupView) -> Conclusion:
        """Merge the results in the plan's order; under a policy, where rules plan none, repeat what was said last."""
        view.meter.decided_by = _RULES
        return conclude_course(view) if view.part is not None else conclude(_legible(view))

    async def approach(self, task: TaskView, tools: TeamTools) -> Alone | TeamLaunch:
        """Do a task alone, or open a nested team for its parts. What is longer than what rules read is done alone."""
        task.group.meter.decided_by = _RULES
        if len(task.spec.task_desc) > MAX_READ_CHARS:
            return Alone(task.spec.task_desc)
        return await approach(replace(task, group=_legible(task.group)), tools, self._threshold)


def _legible(view: GroupView) -> GroupView:
    """Return a group without a plan whose goal is too long to be split has one task, the goal as it is."""
    charter = view.charter
    if charter.plan or len(charter.goal) <= MAX_READ_CHARS:
        return view
    whole = PlannedTask(task_id=task_id_of(0), assignee=charter.owner, task_desc=charter.goal)
    return replace(view, charter=charter.model_copy(update={"plan": (whole,)}))
