"""Search for agents: tools of team formation (paper, appendix A.2.3), and agents that fit the roles of a team."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioa.errors import ForbiddenError, NotFoundError
from ioa.group.requests import Sync
from ioa.ports.brain_types import Contact, NobodyFits, TeamLaunch
from ioa.protocol.agents.search import MAX_NEEDS, Need, Search, SearchResult
from ioa.protocol.codec import validate
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Casting
from ioa.protocol.teams.team_file import TeamSpec
from ioa.telemetry import live_spans

if TYPE_CHECKING:
    from ioa.agent.agent_ports import AgentPorts
    from ioa.ports.agent_network import AgentNetwork

_MIN_HITS = 10


async def find_agents(network: AgentNetwork, search: Search) -> SearchResult:
    """Search for agents."""
    with live_spans.span("search", {"ioa.agent_id": search.by or "", "ioa.needs": len(search.needs)}):
        return await network.search(search)


async def is_launched(network: AgentNetwork, request: Sync) -> bool:
    """Return True if a group was launched, also by another agent; the request names the group and its reader."""
    try:
        return (await network.sync(request)).head > 0
    except NotFoundError:
        return False
    except ForbiddenError:
        return True


def search_for_others(needs: Sequence[str | Need], *, me: AgentId, purpose: str) -> Search:
    """Return a search for needs; needs in words exclude the agent `me`.

    Raises:
        InvalidInputError: A need is not valid.
    """
    spelled = [{"text": need, "filters": {"not_self": True}} if isinstance(need, str) else need for need in needs]
    return validate(Search, {"needs": spelled, "by": me, "purpose": purpose})


@dataclass
class MissionTools:
    """The `TeamTools` of agent `me` for one mission.

    `purpose` names the mission, so that different missions spread over the replicas of a pool.
    """

    ports: AgentPorts
    me: AgentId
    purpose: str

    async def search_client(self, needs: Sequence[Need]) -> SearchResult:
        """Search for agents."""
        return await find_agents(self.ports.network, Search(needs=tuple(needs), by=self.me, purpose=self.purpose))

    async def contacts(self) -> Sequence[Contact]:
        """Return the agents that this agent has worked with."""
        return await self.ports.store.contacts()


async def cast_needs(
    team: TeamSpec, search: Callable[[Sequence[Need]], Awaitable[SearchResult]], *, leader: AgentId
) -> TeamLaunch | NobodyFits:
    """Search for agents for the roles of a team that name a need; group setup knows the others.

    An agent gets two roles, and the leader a role that checks others, only if no other agent fits.

    Raises:
        UnavailableError: Discovery does not answer.
    """
    wanted = [one for one in team.fillings if one.need]
    if not wanted:
        return TeamLaunch(members=())
    needs = [Need(text=one.need, k=max(_MIN_HITS, one.count)) for one in wanted]
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
