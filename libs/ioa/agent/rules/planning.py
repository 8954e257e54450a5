"""Make a team and its plan of needs and the agents found for them."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.rules.breakdown import coordinates, lists_parts, parts_of
from ioa.agent.rules.matching import Matcher, kind_attached, mean_similarity, need_for
from ioa.agent.rules.needs import GoalNeed, split_goal
from ioa.group.state import PlannedTask
from ioa.ports.brain import Mission, NobodyFits, Team, TeamTools
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.search import Hit, NeedHits

WHOLE_IS_FAR_BETTER = 0.15
"""By how much one agent must serve the goal as a whole better than others its parts, for the goal to stay whole."""


async def plan_goal(mission: Mission, tools: TeamTools, threshold: float) -> Team | NobodyFits:
    """Find agents for a goal with one search and plan who does what, in which order."""
    me = mission.me
    needs = split_goal(mission.text)
    parts = parts_of(mission.text, me) if len(needs) == 1 else needs
    whole = needs[0] if len(needs) == 1 else GoalNeed(mission.text, mission.text)
    asked = [whole, *parts]
    found = await tools.search_client([need_for(need) for need in asked])
    matcher = Matcher(threshold, me.agent_id, bool(parts) and coordinates(me), await tools.contacts())
    whole_hit, *picked = await _with_attached(asked, [matcher.pick(hits) for hits in found.by_need], mission, tools, matcher)
    if whole_hit is None and len(needs) == 1 and not lists_parts(mission.text):
        # What a coordinator's team does is no answer to a goal that it does not serve.
        return _unserved(needs, [None], found.by_need, matcher)
    if parts and None not in picked and _by_parts(len(needs), whole_hit, picked, matcher, mine=matcher.mine(found.by_need[0])):
        return team_of(parts, picked, me.agent_id)
    if whole_hit is not None and (len(needs) == 1 or _serves_all(whole_hit, picked)):
        return team_of([whole], [whole_hit], me.agent_id)
    if len(needs) > 1:
        return _unserved(needs, picked, found.by_need[1:], matcher)
    return _unserved(needs, [None], found.by_need, matcher)


def _unserved(needs: Sequence[GoalNeed], picked: Sequence[Hit | None], found: Sequence[NeedHits], matcher: Matcher) -> NobodyFits:
    """Name the needs that found nobody, in the user's words, and who came nearest to each."""
    missed = [(need, hits) for need, hit, hits in zip(needs, picked, found, strict=False) if hit is None]
    nearest = filter(None, (matcher.nearest(need, hits) for need, hits in missed))
    return NobodyFits(tuple(need.request for need, _ in missed), " ".join(nearest))


async def _with_attached(
    asked: Sequence[GoalNeed], picked: list[Hit | None], mission: Mission, tools: TeamTools, matcher: Matcher
) -> list[Hit | None]:
    """Ask again for what found nobody, with the kind of file that came with it: `average yield per clinic` says little of tables.

    Only then, since a sum that is asked beside a table is no question about the table.
    """
    unserved = [at for at, need in enumerate(asked) if picked[at] is None and not need.uses and (at or len(asked) == 1)]
    again = {at: kind for at in unserved if (kind := kind_attached(mission.inputs, asked[at]))}
    if not again:
        return picked
    found = await tools.search_client([need_for(asked[at], kind) for at, kind in again.items()])
    for at, hits in zip(again, found.by_need, strict=True):
        picked[at] = matcher.pick(hits)
    return picked


def _by_parts(needs: int, whole: Hit | None, picked: Sequence[Hit | None], matcher: Matcher, *, mine: float) -> bool:
    """Whether the parts are to be handed out rather than the whole.

    Several requests are, unless one agent is far better for all of them. What only lists its parts is one request, so it stays
    whole
    if anybody serves it, except that a coordinator hands out what it would serve itself.
    """
    if whole is None:
        return True
    if needs > 1:
        return whole.similarity < mean_similarity(picked) + WHOLE_IS_FAR_BETTER or whole.card.agent_id == matcher.me
    return matcher.aside and mine >= whole.similarity


def _serves_all(whole: Hit, picked: Sequence[Hit | None]) -> bool:
    """Whether an agent is so similar to the whole goal that it must mean more than the parts others serve.

    A goal is always similar to whoever serves one of its parts, so a part that nobody serves is not excused by that.
    """
    if None not in picked:
        return whole.similarity >= mean_similarity(picked) + WHOLE_IS_FAR_BETTER
    return whole.similarity >= max(hit.similarity for hit in picked if hit) + WHOLE_IS_FAR_BETTER if any(picked) else False


def team_of(needs: Sequence[GoalNeed], picked: Sequence[Hit | None], owner: AgentId) -> Team:
    """The team that serves these needs, each by the agent picked for it."""
    chosen = [hit.card.agent_id for hit in picked if hit is not None]
    plan = tuple(
        PlannedTask(
            task_id=task_id_of(position),
            assignee=assignee,
            task_desc=need.text,
            uses=tuple(task_id_of(use) for use in need.uses),
        )
        for position, (need, assignee) in enumerate(zip(needs, chosen, strict=True))
    )
    return Team(members=tuple(agent for agent in dict.fromkeys(chosen) if agent != owner), plan=plan)


def task_id_of(position: int) -> TaskId:
    """The id of a plan's task: `t1` is the first."""
    return TaskId(f"t{position + 1}")
