"""Decide whether to do a task alone or with a nested team (paper, section 2.3.2).

A nested team only ever gets parts of the task: never the task itself in other hands, and never back to who opened the team for it.
So each level has less to do than the one above, and the depth limit is not what ends the recursion.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.rules.listed_parts import coordinates, parts_of
from ioa.agent.rules.matching import Matcher, mean_similarity, need_for
from ioa.agent.rules.planning import WHOLE_IS_FAR_BETTER, team_of
from ioa.agent.rules.text.goal_splitting import GoalNeed
from ioa.agent.rules.titles import same_words
from ioa.errors import ForbiddenError, UnavailableError
from ioa.ports.brain import Alone, TaskView, Team, TeamTools
from ioa.protocol.search import Hit, NeedHits

CLEARLY_BETTER = 0.10
"""By how much another agent must be more similar to a part than the one that has the task."""


async def approach(task: TaskView, tools: TeamTools, threshold: float) -> Alone | Team:
    """Open a nested team if the task has parts that others serve clearly better, or that it is one's skill to hand out."""
    alone = Alone(task.spec.task_desc)
    parts = _parts(task)
    if not parts:
        return alone
    whole = GoalNeed(task.spec.task_desc)
    try:
        found = await tools.search_client([need_for(need) for need in (whole, *parts)])
    except (UnavailableError, ForbiddenError):
        return alone
    matcher = Matcher(threshold, task.me.agent_id, coordinates(task.me))
    fitting = [matcher.fitting(hits) for hits in found.by_need[1:]]
    if not all(fitting) or not _is_worth_it(matcher, found.by_need, fitting):
        return alone
    return team_of(parts, fitting, task.me.agent_id)


def _parts(task: TaskView) -> tuple[GoalNeed, ...]:
    charter = task.group.charter
    if not task.me.may_team_up or charter.team_up_depth >= charter.limits.max_depth:
        return ()
    if task.spec.uses:  # the results that feed this task stay with its assignee; by rules, nobody in a team would read them
        return ()
    if charter.parent is not None and (charter.owner == task.me.agent_id or same_words(charter.goal, task.spec.task_desc)):
        return ()
    parts = parts_of(task.spec.task_desc)
    if len(parts) < 2 or any(same_words(part.text, task.spec.task_desc) for part in parts):
        return ()
    return parts


def _is_worth_it(matcher: Matcher, found: Sequence[NeedHits], fitting: Sequence[Sequence[Hit]]) -> bool:
    others = [
        (best.similarity, matcher.mine(hits))
        for (best, *_), hits in zip(fitting, found[1:], strict=True)
        if best.card.agent_id != matcher.me
    ]
    if matcher.aside:
        return bool(others)
    if matcher.mine(found[0]) >= mean_similarity(fitting) + WHOLE_IS_FAR_BETTER:
        return False
    return any(theirs >= mine + CLEARLY_BETTER for theirs, mine in others)
