"""Who plays in a team with a policy: agents by name, replicas of pools that are least busy, and whom its leader found for needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from ioa.errors import InvalidInputError, NoAgentError
from ioa.ports.registry_store import RegistryView
from ioa.protocol.cards import AgentCard, may_draft
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.levels import LEVEL
from ioa.protocol.policy import Casting, Policy
from ioa.protocol.team import Filling, TeamSpec


def cast_roles(team: TeamSpec, found: Sequence[Casting], owner: AgentId, registry: RegistryView) -> tuple[Casting, ...]:
    """Return who holds each role, in the order of the roles.

    A role that names a pool is given to replicas that are online and know the policy, of which some may be of an older release: to
    the owner first, then to who plays nothing yet and is least busy. Roles that speak in one node are given to different replicas.

    Args:
        team: What is cast.
        found: Whom the leader found for roles that name a need.
        owner: Who leads the group.
        registry: Knows who lives.

    Raises:
        NoAgentError: Nobody fills a role; it says which.
        InvalidInputError: Somebody was found for a role that names no need.
    """
    needs = {one.role: one.members for one in found}
    if wrong := needs.keys() - {one.role for one in team.fillings if one.need}:
        raise InvalidInputError(f"The roles {', '.join(sorted(wrong))} name no need: nobody is found for them.")
    able = _Able(registry, team.policy.level)
    people = {role.name: role.human for role in team.policy.roles}
    apart, cast = _apart(team.policy), dict[str, tuple[AgentId, ...]]()
    for filling in team.fillings:
        taken = {agent for role in apart[filling.role] for agent in cast.get(role, ())}
        busy = {agent for members in cast.values() for agent in members}
        if filling.need:
            members = needs.get(filling.role, ())
        elif people[filling.role]:
            members = tuple([seat for seat in filling.agents if seat not in taken])
        else:
            members = tuple([agent for name in filling.agents for agent in _of_name(name, filling.count, owner, taken, busy, able)])
        if len(members) < max(filling.count, len(filling.agents), 1):
            raise NoAgentError(f"The role {filling.role} finds nobody: {_why(filling, len(members))}.")
        cast[filling.role] = tuple(dict.fromkeys(members))
    return tuple([Casting(role=role, members=members) for role, members in cast.items()])


def card_of_seat(seat: AgentId) -> AgentCard:
    """Return the card of a person for whom nothing is registered."""
    return AgentCard(
        agent_id=seat,
        name=seat,
        description="A person.",
        pool=PoolId(seat),
        may_team_up=False,
        leads=False,
        level=LEVEL,
        patience=timedelta(days=30),
        speaks="human",
    )


def check_levels(policy: Policy, cards: Sequence[AgentCard]) -> None:
    """Refuse members whose software does not know all that a policy holds.

    Raises:
        NoAgentError: It names them.
    """
    old = [card.agent_id for card in cards if card.level < policy.level]
    if old:
        raise NoAgentError(
            f"{', '.join(old)} cannot join a team with a policy: of an older release.", hint="Upgrade these agents, or cast others."
        )


def _apart(policy: Policy) -> Mapping[str, set[str]]:
    """Return which roles speak in one node with each."""
    beside: dict[str, set[str]] = {role.name: set() for role in policy.roles}
    for node in policy.nodes:
        for name in node.roles:
            beside[name].update(other for other in node.roles if other != name)
    return beside


class _Able(NamedTuple):
    """Who lives, and from which level on it knows all that a policy holds."""

    registry: RegistryView
    level: int


def _of_name(name: AgentId, count: int, owner: AgentId, taken: set[AgentId], busy: set[AgentId], able: _Able) -> Sequence[AgentId]:
    """Return the agent of this name, or as many replicas of the pool as are free; `taken` are not, since they play beside it."""
    registry = able.registry
    known = registry.card(name)
    if known is not None and count == 1:
        return [] if name in taken else [name]  # whether it is there is asked of all members alike
    leader = registry.card(owner)
    drafter = None if leader is None else leader.card
    free = [
        one.card.agent_id
        for one in registry.cards()
        if one.card.pool == PoolId(name)
        and registry.is_online(one.card.agent_id)
        and one.card.agent_id not in taken
        and one.card.level >= able.level
        and may_draft(drafter, one.card)
    ]

    def rank(agent: AgentId) -> tuple[object, ...]:
        load = registry.load(agent)
        return agent != owner, agent in busy, load.busy, load.groups, agent

    return sorted(free, key=rank)[:count]


def _why(filling: Filling, there: int) -> str:
    if filling.need:
        return f"discovery knows nobody for “{filling.need}”"
    wanted = f"{filling.count} replicas" if filling.count > 1 else "an agent or a free replica"
    must = "must be online, know the policy and hold no other role that speaks in a node of this one"
    return f"{wanted} of {', '.join(filling.agents)} {must}, and there are {there}"
