"""Assign the roles of a team: agents by name, the least busy replicas of pools, and agents that the leader found for needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import timedelta

from ioa.agent.team_formation import cast_needs
from ioa.errors import InvalidInputError, NoAgentError
from ioa.ports.brain_types import NobodyFits
from ioa.ports.discovery import Discovery
from ioa.ports.registry_view import RegistryView
from ioa.protocol.agents.search import Need, Search, SearchResult
from ioa.protocol.cards import AgentCard, why_not_drafted
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.policy import Casting
from ioa.protocol.setup.charter import ParentTask
from ioa.protocol.teams.team_file import Filling, TeamSpec


async def cast_team_of_task(team: TeamSpec, task: ParentTask, assignee: AgentId, discovery: Discovery) -> tuple[Casting, ...]:
    """Find agents for the roles of a task's stored team that name a need, as its leader, the assignee, would.

    Raises:
        NoAgentError: No agent fits a need.
        UnavailableError: Discovery does not answer.
    """
    if not any(filling.need for filling in team.fillings):
        return ()

    async def search(needs: Sequence[Need]) -> SearchResult:
        return await discovery.search(Search(needs=tuple(needs), by=assignee, purpose=f"{task.comm_id}/{task.task_id}"))

    cast = await cast_needs(team, search, leader=assignee)
    if isinstance(cast, NobodyFits):
        raise NoAgentError(f"The team {team.team} is not complete: no agent fits the need “{cast.needs[0]}”.")
    return cast.cast


def cast_roles(team: TeamSpec, found: Sequence[Casting], owner: AgentId, registry: RegistryView) -> tuple[Casting, ...]:
    """Return the members of each role, in the order of the roles.

    A role that names a pool is assigned to online replicas: the owner first, then agents without a role, the least busy first.
    Roles of one node are assigned to different replicas.

    Args:
        team: The team with its policy.
        found: Agents that the leader found for roles that name a need.
        owner: The agent that leads the group.
        registry: Cards, liveness and load of agents.

    Raises:
        NoAgentError: A role has too few agents, or the owner was found for a role that checks a role of the owner.
        InvalidInputError: Agents were found for a role that names no need, or more agents than the role wants.
    """
    needs = {one.role: tuple(dict.fromkeys(one.members)) for one in found}
    if wrong := needs.keys() - {one.role for one in team.fillings if one.need}:
        raise InvalidInputError(f"The roles {', '.join(sorted(wrong))} name no need, so that no agent can be found for them.")
    people = {role.name: role.human for role in team.policy.roles}
    cast = dict[str, tuple[AgentId, ...]]()
    for filling in team.fillings:
        beside = {role for node in team.policy.nodes if filling.role in node.roles for role in node.roles} - {filling.role}
        taken = {agent for role in beside for agent in cast.get(role, ())}
        busy = {agent for members in cast.values() for agent in members}
        if filling.need:
            members: Sequence[AgentId] = needs.get(filling.role, ())
            if len(members) > filling.count:
                raise InvalidInputError(f"The role {filling.role} wants {filling.count} agents, and {len(members)} were found.")
        elif people[filling.role]:
            members = [seat for seat in filling.agents if seat not in taken]
        else:
            members = [agent for name in filling.agents for agent in _able(name, filling.count, owner, registry, taken, busy)]
        if len(members) < max(filling.count, len(filling.agents), 1):
            raise NoAgentError(f"The role {filling.role} has too few agents: {_why(filling, len(members))}.")
        cast[filling.role] = tuple(dict.fromkeys(members))
    _check_own(team, cast, owner)
    return tuple([Casting(role=role, members=members) for role, members in cast.items()])


def _check_own(team: TeamSpec, cast: Mapping[str, Sequence[AgentId]], owner: AgentId) -> None:
    """Reject an owner that was found for a role that reviews, judges or watches another role of the owner."""
    own = {role for role, members in cast.items() if owner in members}
    for filling in team.fillings:
        if filling.need and filling.role in own and (checked := sorted(team.policy.checked[filling.role] & own)):
            why = f"“{filling.need}” needs an agent other than {owner}, which has the role {', '.join(checked)}"
            raise NoAgentError(f"The role {filling.role} has too few agents: {why}.")


def card_of_seat(seat: AgentId) -> AgentCard:
    """Return the card of a seat for a person."""
    return AgentCard(
        agent_id=seat,
        name=seat,
        description="A person.",
        pool=PoolId(seat),
        may_team_up=False,
        leads=False,
        patience=timedelta(days=30),
        speaks="human",
    )


def _able(
    name: AgentId, count: int, owner: AgentId, registry: RegistryView, taken: Set[AgentId], busy: Set[AgentId]
) -> Sequence[AgentId]:
    """Return the agent of this name, or at most `count` replicas of the pool, the owner and idle ones first, without `taken`."""
    if count == 1 and registry.card(name) is not None:
        return [] if name in taken else [name]  # the invitation checks that the agent is online
    leader = registry.card(owner)
    drafter = None if leader is None else leader.card

    def rank(agent: AgentId) -> tuple[object, ...]:
        load = registry.load(agent)
        return agent != owner, agent in busy, load.busy, load.groups, agent

    free = [
        one.card.agent_id
        for one in registry.of_pool(PoolId(name))
        if one.card.agent_id not in taken and registry.is_online(one.card.agent_id) and not why_not_drafted(drafter, one.card)
    ]
    return sorted(free, key=rank)[:count]


def _why(filling: Filling, there: int) -> str:
    if filling.need:
        return f"discovery found no agent for “{filling.need}”"
    wanted = f"{filling.count} replicas" if filling.count > 1 else "an agent or a free replica"
    must = "must be online, support policies and hold no other role of the same node"
    return f"{wanted} of {', '.join(filling.agents)} {must}, found {there}"
