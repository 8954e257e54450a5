"""Finding who fits the roles of a team that name a need. Who fills the others, group setup knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ioa.ports.brain import NobodyFits, TeamLaunch
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Casting
from ioa.protocol.search import MAX_NEEDS, Need, SearchResult
from ioa.protocol.team import TeamSpec

_CONSIDERED = 10


async def cast_needs(
    team: TeamSpec, search: Callable[[Sequence[Need]], Awaitable[SearchResult]], *, leader: AgentId
) -> TeamLaunch | NobodyFits:
    """Ask discovery by `search` who fits; each role gets agents that play in no other one, as long as there are such.

    The leader checks others only if no other agent does.

    Raises:
        UnavailableError: Discovery does not answer.
    """
    wanted = [one for one in team.fillings if one.need]
    if not wanted:
        return TeamLaunch(members=())
    needs = [Need(text=one.need, k=max(_CONSIDERED, one.count)) for one in wanted]
    found = [hits for at in range(0, len(needs), MAX_NEEDS) for hits in (await search(needs[at : at + MAX_NEEDS])).by_need]
    taken: set[AgentId] = {agent for one in team.fillings for agent in one.agents}
    cast: list[Casting] = []
    for filling, hits in zip(wanted, found, strict=True):
        fitting = [hit.card.agent_id for hit in hits.hits]
        checks = bool(team.policy.checked[filling.role])
        chosen = sorted(fitting, key=lambda agent: (checks and agent == leader, agent in taken))[: filling.count]
        if len(chosen) < filling.count:
            return NobodyFits((filling.need,))
        taken.update(chosen)
        cast.append(Casting(role=filling.role, members=tuple(chosen)))
    return TeamLaunch(members=(), cast=tuple(cast))
