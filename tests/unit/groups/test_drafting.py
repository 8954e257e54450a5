"""Whom a card accepts: who may be drafted into a team, and by whom."""

from __future__ import annotations

import pytest

from ioa.errors import NoAgentError
from ioa.group.requests import LaunchGroup
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import Register
from ioa.protocol.search import Need, Search
from ioa_groups.casting import cast_roles
from tests.unit.discovery.test_replicas import Town
from tests.unit.group.scenario import card
from tests.unit.groups.test_casting import team
from tests.unit.runtime.plane import ADA, BOB, GOAL, TICKET, Plane


@pytest.mark.parametrize(
    ("accepts", "may"), [(None, True), (["ada"], True), (["office", "ada"], True), (["office"], False), ([], False)]
)
async def test_only_pools_that_a_card_accepts_draft_its_agent(accepts: list[str] | None, may: bool) -> None:
    """Who is not accepted opens no group with the agent, casts no replica of it, and finds it by no search; the others do."""
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


async def test_replicas_of_one_pool_draft_each_other() -> None:
    """An agent that accepts nobody still works with those of its own pool."""
    plane = Plane()
    for name in (ADA, BOB):
        await plane.registry.register(Register(card=card(name, pool="ours", accepts=[])))
    await plane.accept()
    assert await _launches(plane)


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


def test_what_a_card_does_not_say_is_not_told() -> None:
    """Cards that restrict nobody travel as they did."""
    said = card(AgentId("a"), accepts=["b"]).model_dump()
    assert ("accepts" in card(AgentId("a")).model_dump(), said["accepts"]) == (False, (PoolId("b"),))
