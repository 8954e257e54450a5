"""Decide whether to do a task alone or with a nested team (paper, section 2.3.2).

A nested team only ever gets parts of the task: never the task itself in other hands, and never back to who opened the team for it.
So each level has less to do than the one above, and the depth limit is not what ends the recursion.
"""

from __future__ import annotations

from ioa.agent.rules.listed_parts import coordinates, parts_of
from ioa.agent.rules.matching import Matcher, need_for
from ioa.agent.rules.planning import team_of
from ioa.agent.rules.text.goal_splitting import GoalNeed
from ioa.agent.rules.titles import same_words
from ioa.errors import ForbiddenError, UnavailableError
from ioa.ports.brain import Alone, TaskView, TeamLaunch, TeamTools


async def approach(task: TaskView, tools: TeamTools, threshold: float) -> Alone | TeamLaunch:
    """Open a nested team for the parts that a task lists, if it is one's skill to hand them out and others serve them."""
    alone = Alone(task.spec.task_desc)
    parts = _parts(task)
    if not parts:
        return alone
    try:
        found = await tools.search_client([need_for(part) for part in parts])
    except (UnavailableError, ForbiddenError):
        return alone
    me = task.me.agent_id
    fitting = [Matcher(threshold, me, aside=True).fitting(hits) for hits in found.by_need]
    if not all(fitting) or all(best.card.agent_id == me for best, *_ in fitting):
        return alone
    return team_of(parts, fitting, me)


def _parts(task: TaskView) -> tuple[GoalNeed, ...]:
    charter = task.group.charter
    if not (task.me.may_team_up and coordinates(task.me)) or charter.team_up_depth >= charter.limits.max_depth:
        return ()
    if task.spec.uses:  # the results that feed this task stay with its assignee; by rules, nobody in a team would read them
        return ()
    if charter.parent is not None and (charter.owner == task.me.agent_id or same_words(charter.goal, task.spec.task_desc)):
        return ()
    parts = parts_of(task.spec.task_desc)
    if len(parts) < 2 or any(same_words(part.text, task.spec.task_desc) for part in parts):
        return ()
    return parts
