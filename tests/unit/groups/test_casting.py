"""Who plays in a team: agents by name, replicas that are free, and whom its leader found; and who may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ioa.errors import InvalidInputError, NoAgentError
from ioa.group.requests import LaunchGroup
from ioa.protocol.ids import AgentId
from ioa.protocol.policy import Casting
from ioa.protocol.registry import Register
from ioa.protocol.search import Need, Search
from ioa.protocol.team import TeamSpec, team_of
from ioa_groups.casting import cast_roles
from tests.unit.discovery.test_replicas import Town
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, TICKET, Plane


def team(roles: Mapping[str, Any], *nodes: Sequence[str]) -> TeamSpec:
    """A team whose nodes have these roles, one after the other; all roles in one node if none is named."""
    named = [list(node) for node in nodes] or [list(roles)]
    told = [{"name": f"n{number}", "roles": node, "then": f"n{number + 1}"} for number, node in enumerate(named)]
    return team_of({"team": "t", "roles": roles, "nodes": [*told[:-1], {**told[-1], "then": "end"}]})


async def pool(plane: Plane, name: str, replicas: int) -> None:
    """Register some replicas of a pool."""
    for number in range(1, replicas + 1):
        await plane.registry.register(Register(card=card(f"{name}-{number}", pool=name)))


def cast(plane: Plane, of: TeamSpec, *found: Casting, owner: str = "ada") -> dict[str, tuple[str, ...]]:
    """Who is cast."""
    return {one.role: one.members for one in cast_roles(of, found, AgentId(owner), plane.view)}


async def test_roles_of_one_node_get_different_replicas(plane: Plane) -> None:
    """The leader plays first; a replica plays two roles only where they never meet, and nobody else is free."""
    await pool(plane, "debater", 2)
    debate = team({"pro": "debater", "con": "debater", "chair": "debater"}, ["pro", "con"], ["chair"])
    expected = {"pro": ("debater-2",), "con": ("debater-1",), "chair": ("debater-2",)}
    assert cast(plane, debate, owner="debater-2") == expected


async def test_a_role_without_a_free_replica_is_named(plane: Plane) -> None:
    """Whoever waits for the goal learns what to start."""
    await pool(plane, "debater", 1)
    both = team({"pro": "debater", "con": "debater"})
    with pytest.raises(NoAgentError, match="The role con has too few agents: an agent or a free replica of debater must be online"):
        cast(plane, both)
    with pytest.raises(NoAgentError, match="The role pro has too few agents: 3 replicas of debater"):
        cast(plane, team({"pro": {"agent": "debater", "count": 3}}))
    with pytest.raises(NoAgentError, match="The role pro has too few agents: discovery found no agent for “sums”"):
        cast(plane, team({"pro": {"need": "sums"}}))


async def test_an_agent_is_not_cast_twice_in_one_node(plane: Plane) -> None:
    """A debate with itself is hardly ever meant."""
    await plane.join(ADA)
    assert cast(plane, team({"pro": ADA, "con": ADA}, ["pro"], ["con"])) == {"pro": (ADA,), "con": (ADA,)}
    with pytest.raises(NoAgentError, match="The role con has too few agents"):
        cast(plane, team({"pro": ADA, "con": ADA}))


async def test_agents_found_by_leader_play_roles_with_a_need(plane: Plane) -> None:
    """And nothing else."""
    await plane.join(ADA, BOB)
    one = team({"lead": ADA, "helper": {"need": "sums"}})
    assert cast(plane, one, Casting(role="helper", members=(BOB,))) == {"lead": (ADA,), "helper": (BOB,)}
    with pytest.raises(InvalidInputError, match="The roles lead name no need"):
        cast(plane, one, Casting(role="lead", members=(BOB,)))


async def test_a_need_is_filled_by_as_many_different_agents_as_it_wants(plane: Plane) -> None:
    """One that is named thrice is one, and nobody is found beyond what was asked for."""
    await plane.join(ADA)
    jury = team({"lead": ADA, "voter": {"need": "votes", "count": 2}})
    assert cast(plane, jury, Casting(role="voter", members=(BOB, EVE)))["voter"] == (BOB, EVE)
    with pytest.raises(NoAgentError, match="The role voter has too few agents"):
        cast(plane, jury, Casting(role="voter", members=(EVE, EVE)))
    with pytest.raises(InvalidInputError, match="The role voter wants 2 agents, and 3 were found"):
        cast(plane, jury, Casting(role="voter", members=(ADA, BOB, EVE)))


@pytest.mark.parametrize(
    "checks",
    [
        {"review": "judge"},
        {"exits": [{"to": "y", "by": "judge"}, {"to": "end"}], "then": None},
        {"watched": {"role": "judge", "may": ["end"]}},
    ],
    ids=["reviews", "judges", "watches"],
)
async def test_who_leads_is_not_found_to_check_itself(checks: dict[str, Any]) -> None:
    """It says who is found; who plays nothing of it checks others, and the author may name it for both."""
    plane, node = Plane(), {"name": "x", "roles": ["lead"], "max": 2, "then": "y", **checks}
    told = {"watchers": [node.pop("watched")]} if "watched" in node else {}
    after = {"name": "y", "roles": ["judge"], "max": 2}
    of = {"team": "t", "nodes": [{name: value for name, value in node.items() if value is not None}, after], **told}
    await plane.join(ADA)
    by_need = team_of({**of, "roles": {"lead": ADA, "judge": {"need": "judges"}}})
    with pytest.raises(
        NoAgentError, match="The role judge has too few agents: “judges” needs an agent other than ada, which has the role lead"
    ):
        cast(plane, by_need, Casting(role="judge", members=(ADA,)))
    assert cast(plane, by_need, Casting(role="judge", members=(BOB,)))["judge"] == (BOB,)
    assert cast(plane, by_need, Casting(role="judge", members=(EVE,)), owner="eve")["judge"] == (EVE,)
    assert cast(plane, team_of({**of, "roles": {"lead": ADA, "judge": ADA}}))["judge"] == (ADA,)


@pytest.mark.parametrize("listed", [("bob", "eve", "joe", "zoe"), ("zoe", "joe", "eve", "bob")])
async def test_members_join_in_an_order_that_tells_nobody_who_holds_a_secret_role(listed: Sequence[str]) -> None:
    """Neither who comes first in the file nor which role is written first: whoever plays what, all are seated alike."""
    orders = set[tuple[Sequence[AgentId], Sequence[AgentId]]]()
    for spy in listed:
        plane, roles = Plane(), {"host": ADA, "spy": {"agent": spy, "secret": True}, "player": {"agents": [*listed]}}
        await plane.join(ADA, *map(AgentId, listed))
        game = team(roles, ["host", "player"])
        await plane.accept(team=game)
        launch = LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET, policy=game.policy.digest)
        charter = (await plane.setup.launch(launch)).charter
        assert charter is not None
        orders.add((tuple([one.agent_id for one in charter.team_members]), charter.cast[2].members))
    [(members, players)] = orders
    assert members == (ADA, *players) and {*players} == {*listed}


@pytest.mark.parametrize(("accepts", "may"), [(None, True), (["office", "ada"], True), (["office"], False), ([], False)])
async def test_only_pools_that_a_card_accepts_draft_its_agent(accepts: list[str] | None, may: bool) -> None:
    """A pool that is not accepted cannot open a group with the agent, cast a replica of it, or find it; other pools can."""
    plane, town = Plane(), Town()
    drafted = card(BOB, pool="bobs", accepts=accepts)
    for one in (card(ADA), drafted):
        await plane.registry.register(Register(card=one))
    await town.join(card(ADA), drafted)
    await plane.accept()
    found = await town.searcher.search(Search(needs=(Need(text="bob helps"),), by=ADA))
    achieved = [
        BOB in [hit.card.agent_id for hit in found.merged],
        _casts(plane),
        await _launches(plane),
    ]
    assert achieved == [may] * 3


def _casts(plane: Plane) -> bool:
    try:
        cast_roles(team({"helper": "bobs"}), (), ADA, plane.view)
    except NoAgentError:
        return False
    return True


async def _launches(plane: Plane) -> bool:
    try:
        await plane.setup.launch(LaunchGroup(owner=ADA, members=(BOB,), goal_id=GOAL, ticket=TICKET))
    except NoAgentError as error:
        assert "accepts no teams of the pool ada" in error.message
        return False
    return True
