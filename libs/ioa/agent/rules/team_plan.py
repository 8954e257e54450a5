"""A team with a policy, planned without a model: a role and a node for each need of the goal, and in the end who leads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ioa.agent.rules.text.goal_splitting import MAX_READ_CHARS, GoalNeed, split_goal
from ioa.protocol.policy import MAX_ROLES
from ioa.protocol.team import MAX_NEED_CHARS, TeamSpec, team_of

LEADER = "leader"


def team_of_needs(goal: str) -> TeamSpec | None:
    """Plan a team that serves the needs of a goal, each after those whose results it uses.

    Returns:
        None if there is a single need, or more of them than a team has roles, or the goal is longer than what rules read.
    """
    needs = split_goal(goal) if len(goal) <= MAX_READ_CHARS else ()
    if not 1 < len(needs) < MAX_ROLES:
        return None
    depths = _depths(needs)
    in_order = sorted(range(len(needs)), key=lambda at: (depths[at], at))
    parts = {f"part-{number}": needs[at].text for number, at in enumerate(in_order, 1)}
    roles: dict[str, object] = {
        name: {"need": text[:MAX_NEED_CHARS], "prompt": f"Your part: {text}"} for name, text in parts.items()
    }
    roles[LEADER] = {"need": goal[:MAX_NEED_CHARS], "prompt": "State the result from what the others have said."}
    names = [*parts, "result"]
    nodes = [{"name": name, "roles": [name], "then": after} for name, after in itertools.pairwise(names)]
    last = {"name": "result", "roles": [LEADER]}
    return team_of({"team": "planned", "goal": goal, "leader": LEADER, "roles": roles, "nodes": [*nodes, last]})


def _depths(needs: Sequence[GoalNeed]) -> Sequence[int]:
    """Return how many steps lie before each need; it uses earlier ones alone."""
    depths = list[int]()
    for need in needs:
        depths.append(max((1 + depths[use] for use in need.uses), default=0))
    return depths
