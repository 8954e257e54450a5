"""Choose the agents that may do each task of a goal, from the hits of discovery."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.rules.list_plan import ListItem
from ioa.group.state import PlannedTask
from ioa.ports.brain import TeamLaunch, TeamTools
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId, TaskId
from ioa.protocol.search import MAX_NEED_CHARS, Need, NeedHits

DEFAULT_THRESHOLD = 0.35
"""Minimum similarity of an agent that gets a task and does not decline unsuitable ones (measured by benchmarks/similarity.py)."""
MAX_CANDIDATES = 3
"""Maximum agents for a task: the assignee, and two for when it fails."""
_HITS = 10


async def search(items: Sequence[ListItem], tools: TeamTools) -> Sequence[NeedHits]:
    """Search the agents for each task with one request."""
    needs = [Need(text=item.text[:MAX_NEED_CHARS], k=_HITS) for item in items]
    return (await tools.search_client(needs)).by_need


def candidates(found: NeedHits, threshold: float) -> list[AgentCard]:
    """Return the agents that may do a task, best first and one of each pool: they fit it, or decline it if they do not."""
    of_pool: dict[PoolId, AgentCard] = {}
    for hit in found.hits:
        if hit.similarity >= threshold or hit.card.declines:
            of_pool.setdefault(hit.card.pool, hit.card)
    return list(of_pool.values())[:MAX_CANDIDATES]


def build_team(items: Sequence[ListItem], agents: Sequence[Sequence[AgentCard]], owner: AgentId) -> TeamLaunch:
    """Return the team of these tasks' agents, and its plan."""
    plan = tuple(
        PlannedTask(
            task_id=TaskId(f"t{position}"),
            assignee=first.agent_id,
            others=tuple(card.agent_id for card in others),
            task_desc=item.text,
            uses=tuple(TaskId(f"t{use + 1}") for use in item.uses),
        )
        for position, (item, (first, *others)) in enumerate(zip(items, agents, strict=True), 1)
    )
    members = dict.fromkeys([*(task.assignee for task in plan), *(agent for task in plan for agent in task.others)])
    return TeamLaunch(members=tuple(agent for agent in members if agent != owner), plan=plan)
