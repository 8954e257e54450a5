"""Make a team and its plan of needs and the agents found for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ioa.agent.rules.listed_parts import coordinates, listed_in
from ioa.agent.rules.matching import Matcher, kind_attached, need_for
from ioa.agent.rules.text.goal_splitting import GoalNeed, split_goal
from ioa.group.state import PlannedTask
from ioa.ports.brain import Mission, NobodyFits, TeamLaunch, TeamTools
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.search import Hit, NeedHits

WHOLE_IS_FAR_BETTER = 0.15
"""By how much one agent must serve the goal as a whole better than others its parts, for the goal to stay whole."""


async def plan_goal(mission: Mission, tools: TeamTools, threshold: float) -> TeamLaunch | NobodyFits:
    """Find agents for a goal with one search and plan who does what, in which order."""
    me = mission.me
    needs = split_goal(mission.text, [one.name for one in mission.inputs])
    parts = listed_in(mission.text) if len(needs) == 1 else needs
    whole = needs[0] if len(needs) == 1 else GoalNeed(mission.text)
    asked = [whole, *parts]
    found = await _search(asked, mission, tools)
    matcher = Matcher(threshold, me.agent_id, bool(parts) and coordinates(me))
    for_whole, *for_parts = [matcher.fitting(*hits) for hits in found]
    if parts and len(needs) == 1 and (coordinator := matcher.coordinator(*found[0])):
        return team_of([whole], [[coordinator]], me.agent_id)
    if parts and all(for_parts):
        return team_of(parts, for_parts, me.agent_id)
    if for_whole and (len(needs) == 1 or _serves_all(for_whole[0], for_parts)):
        return team_of([whole], [for_whole], me.agent_id)
    fitting, found = (for_parts, found[1:]) if len(needs) > 1 else ([for_whole], found[:1])
    asked_in_doubt = [fit or matcher.last_resort(*hits) for fit, hits in zip(fitting, found, strict=True)]
    if all(asked_in_doubt):
        return replace(team_of(needs, asked_in_doubt, me.agent_id), in_doubt=True)
    return _unserved(needs, asked_in_doubt, found, matcher)


def _unserved(
    needs: Sequence[GoalNeed], fitting: Sequence[Sequence[Hit]], found: Sequence[Sequence[NeedHits]], matcher: Matcher
) -> NobodyFits:
    """Name the needs that found nobody, in the user's words, and who came nearest to each."""
    missed = [(need, hits) for need, fit, hits in zip(needs, fitting, found, strict=True) if not fit]
    nearest = filter(None, (matcher.nearest(need, hits[-1]) for need, hits in missed))
    return NobodyFits(tuple(need.text for need, _ in missed), " ".join(nearest))


async def _search(asked: Sequence[GoalNeed], mission: Mission, tools: TeamTools) -> list[list[NeedHits]]:
    """Ask for each need, and once more with the kind of file that came along: `average yield per clinic` says little of tables.

    Who is found for the need alone comes first, since a sum that is asked beside a table is no question about the table.
    """
    kinds = [
        kind_attached(mission.inputs, need) if not need.uses and (at or len(asked) == 1) else "" for at, need in enumerate(asked)
    ]
    again = [at for at, kind in enumerate(kinds) if kind]
    found = await tools.search_client([*map(need_for, asked), *(need_for(asked[at], kinds[at]) for at in again)])
    hits = [[alone] for alone in found.by_need[: len(asked)]]
    for at, attached in zip(again, found.by_need[len(asked) :], strict=True):
        hits[at].append(attached)
    return hits


def _serves_all(whole: Hit, parts: Sequence[Sequence[Hit]]) -> bool:
    """Whether an agent is so similar to the whole goal that it must mean the part too that nobody serves.

    A goal is always similar to whoever serves one of its parts, so a part that nobody serves is not excused by that.
    """
    served = [hits[0].similarity for hits in parts if hits]
    return bool(served) and whole.similarity >= max(served) + WHOLE_IS_FAR_BETTER


def team_of(needs: Sequence[GoalNeed], fitting: Sequence[Sequence[Hit]], owner: AgentId) -> TeamLaunch:
    """Return the team that serves these needs, each by who fits best. The others who fit are members too, and stand by."""
    plan = tuple(
        PlannedTask(
            task_id=task_id_of(position),
            assignee=hits[0].card.agent_id,
            others=tuple(hit.card.agent_id for hit in hits[1:]),
            task_desc=need.text,
            uses=tuple(task_id_of(use) for use in need.uses),
        )
        for position, (need, hits) in enumerate(zip(needs, fitting, strict=True))
    )
    members = (*(task.assignee for task in plan), *(other for task in plan for other in task.others))
    return TeamLaunch(members=tuple(agent for agent in dict.fromkeys(members) if agent != owner), plan=plan)


def task_id_of(position: int) -> TaskId:
    """Return the id of a plan's task: `t1` is the first."""
    return TaskId(f"t{position + 1}")
