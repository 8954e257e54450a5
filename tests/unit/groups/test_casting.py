"""Who plays in a team: agents by name, replicas that are free, and whom its leader found; and who may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ioa.errors import NoAgentError
from ioa.group.requests import LaunchGroup
from ioa.protocol.agents.search import Need, Search
from ioa.protocol.ids import AgentId
from ioa.protocol.registry import Register
from ioa.protocol.teams.team_file import TeamSpec, team_of
from tests.unit.discovery.test_replicas import Town
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, GOAL, TICKET, Plane


def team(roles: Mapping[str, Any], *nodes: Sequence[str]) -> TeamSpec:
    """A team whose nodes have these roles, one after the other; all roles in one node if none is named."""
    named = [list(node) for node in nodes] or [list(roles)]
    told = [{"name": f"n{number}", "roles": node, "then": f"n{number + 1}"} for number, node in enumerate(named)]
    return team_of({"team": "t", "roles": roles, "nodes": [*told[:-1], {**told[-1], "then": "end"}]})


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
        plane.cast({"team": "t", "roles": {"helper": "bobs"}, "nodes": [{"name": "x", "roles": ["helper"]}]}, {}, ADA)
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
