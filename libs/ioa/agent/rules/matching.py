"""Choose the agents that may do each task of a goal, from the hits of discovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ioa.agent.rules.list_plan import ListItem
from ioa.ports.brain_types import TeamLaunch, TeamTools
from ioa.protocol.agents.search import MAX_NEED_CHARS, Need
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId, TaskId
from ioa.protocol.setup.charter import PlannedTask

THRESHOLD = 0.35
"""Minimum similarity of an agent that gets a task and does not decline unsuitable ones."""
MAX_CANDIDATES = 3
"""Maximum agents for a task: the assignee, and two for when it fails."""
_HITS = 10


class ItemMatch(NamedTuple):
    """A task, the found agents, and the agents that may do it: best first, one per pool."""

    item: ListItem
    found: Sequence[AgentCard]
    agents: Sequence[AgentCard]


async def match_agents(items: Sequence[ListItem], tools: TeamTools) -> list[ItemMatch]:
    """Find the agents that may do each task, with a single search: they reach the threshold, or decline unsuitable tasks."""
    needs = [Need(text=item.text[:MAX_NEED_CHARS], k=_HITS) for item in items]
    matches = []
    for item, found in zip(items, (await tools.search_client(needs)).by_need, strict=True):
        agents: dict[PoolId, AgentCard] = {}
        for hit in found.hits:
            if hit.similarity >= THRESHOLD or hit.card.declines:
                agents.setdefault(hit.card.pool, hit.card)
        matches.append(ItemMatch(item, [hit.card for hit in found.hits], [*agents.values()][:MAX_CANDIDATES]))
    return matches


def build_team(matches: Sequence[ItemMatch], owner: AgentId) -> TeamLaunch:
    """Return the team of these tasks' agents, and its plan."""
    plan = []
    for number, (item, _, (first, *others)) in enumerate(matches, 1):
        uses = tuple(TaskId(f"t{use + 1}") for use in item.uses)
        stand_ins = tuple(card.agent_id for card in others)
        task_id = TaskId(f"t{number}")
        plan.append(PlannedTask(task_id=task_id, assignee=first.agent_id, others=stand_ins, task_desc=item.text, uses=uses))
    members = dict.fromkeys([*(task.assignee for task in plan), *(agent for task in plan for agent in task.others)])
    return TeamLaunch(tuple(agent for agent in members if agent != owner), tuple(plan))
