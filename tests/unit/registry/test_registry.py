"""Registering agents and keeping their leases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.errors import NotFoundError
from ioa.group.requests import CancelGroup
from ioa.protocol.ids import AgentId, CommId, PoolId
from ioa.protocol.load import Load
from ioa.protocol.messages import Discussion
from ioa.protocol.registry import Deregister, GetAgents, ListAgents, Register, Renew
from ioa.testing.manual_clock import NEW_YEAR
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, LEASE, ROOM, Plane


async def test_registering_makes_an_agent_known_and_alive() -> None:
    """A registered agent is online, its pool has a queue, and it is told how long its lease lasts."""
    plane = Plane()
    lease = await plane.registry.register(Register(card=card("ada")))
    [status] = (await plane.registry.get(GetAgents(agent_ids=(ADA, BOB)))).agents
    assert (lease.duration, lease.renew_every, lease.heads) == (LEASE, LEASE / 3, {})
    assert (status.online, status.registered_at, plane.work.pools) == (True, NEW_YEAR, {PoolId("ada")})


async def test_registering_again_updates_the_card() -> None:
    """A new card replaces the old; the agent stays the one that registered first."""
    plane = Plane()
    await plane.join(ADA)
    plane.clock.advance(timedelta(minutes=1))
    await plane.registry.register(Register(card=card("ada").model_copy(update={"name": "Ada II"})))
    [status] = (await plane.registry.get(GetAgents(agent_ids=(ADA,)))).agents
    assert (status.card.name, status.registered_at, status.online) == ("Ada II", NEW_YEAR, True)


async def test_a_card_that_says_too_little_is_advised() -> None:
    """A card without examples, or with hardly any, is accepted with a word on what to add; one with enough without."""
    plane = Plane()
    examples = ("Count to ten.", "How many are there?", "Add these up.")
    answers = [
        await plane.registry.register(Register(card=card("ada").model_copy(update={"examples": examples[:number]})))
        for number in (0, 1, 3)
    ]
    told = [[warning.split(":")[0] for warning in answer.warnings] for answer in answers]
    none, few = "The card has no examples, and discovery goes by them most", "The card has only 1 of the six to twelve examples"
    assert [told[0][0], told[1][0][: len(few)], told[2]] == [none, few, []]


async def test_a_renewal_tells_how_busy_the_agent_is() -> None:
    """Whoever lists agents sees the load of their last renewal; registering again is no work."""
    plane = Plane()
    await plane.join(ADA)
    await plane.registry.renew(Renew(agent_id=ADA, load=Load(tasks=3, groups=2, slots=4)))
    [status] = (await plane.registry.list(ListAgents())).agents
    assert status.load == Load(tasks=3, groups=2, slots=4)


async def test_a_lease_that_is_not_renewed_takes_the_agent_offline() -> None:
    """Offline is not forgotten: the card stays, and renewing is enough to come back."""
    plane = Plane()
    await plane.join(ADA)
    plane.clock.advance(LEASE)
    seen = [status.online for status in (await plane.registry.list(ListAgents())).agents]
    await plane.registry.renew(Renew(agent_id=ADA))
    seen += [status.online for status in (await plane.registry.list(ListAgents())).agents]
    assert seen == [False, True]


async def test_the_unknown_cannot_renew() -> None:
    """An agent that the registry does not know is told to register."""
    with pytest.raises(NotFoundError, match="Register first"):
        await Plane().registry.renew(Renew(agent_id=ADA))


async def test_deregistering_is_at_once_and_may_be_repeated() -> None:
    """An agent that leaves is offline; leaving twice, or without having come, is no error."""
    plane = Plane()
    await plane.join(ADA)
    for agent_id in (ADA, ADA, BOB):
        await plane.registry.deregister(Deregister(agent_id=agent_id))
    assert [(status.card.agent_id, status.online) for status in (await plane.registry.list(ListAgents())).agents] == [(ADA, False)]


async def test_agents_are_listed_page_by_page() -> None:
    """Pages follow the ids and join without gap; filters leave out pools and the absent."""
    plane = Plane()
    for agent_id, pool in (("c", "x"), ("a", "x"), ("b", "y"), ("d", "x")):
        await plane.registry.register(Register(card=card(agent_id).model_copy(update={"pool": PoolId(pool)})))
    await plane.registry.deregister(Deregister(agent_id=AgentId("d")))

    async def ids(request: ListAgents) -> list[str]:
        return [status.card.agent_id for status in (await plane.registry.list(request)).agents]

    assert [await ids(ListAgents(limit=3)), await ids(ListAgents(limit=3, after=AgentId("c")))] == [["a", "b", "c"], ["d"]]
    assert await ids(ListAgents(pool=PoolId("x"), online_only=True)) == ["a", "c"]


async def test_a_lease_tells_where_the_agents_groups_stand() -> None:
    """Every open group of the agent is named with its head, so that it sees whether it missed something."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.says(ADA, Discussion(content="You.", next_speaker=BOB))
    head = (await plane.entries())[-1].seq
    leases = [await plane.registry.renew(Renew(agent_id=BOB)), await plane.registry.register(Register(card=card("bob")))]
    assert [lease.heads for lease in leases] == [{ROOM: head}] * 2


async def test_heads_are_read_again_when_something_was_appended() -> None:
    """What a renewal has read holds for the next ones until any group moves on."""
    plane = Plane()
    await plane.open(ADA, BOB)
    heads = [(await plane.registry.renew(Renew(agent_id=BOB))).heads for _ in range(2)]
    await plane.says(ADA, Discussion(content="You.", next_speaker=BOB))
    heads.append((await plane.registry.renew(Renew(agent_id=BOB))).heads)
    first, second = (stored.seq for stored in await plane.entries())
    assert heads == [{ROOM: first}, {ROOM: first}, {ROOM: second}]


async def test_a_group_is_named_until_its_end_is_known() -> None:
    """A group that ended is named until the agent has seen its last entry, and then no more, to this agent alone."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.setup.cancel(CancelGroup(goal_id=GOAL))
    head = (await plane.entries())[-1].seq
    cursors = [{ROOM: 1}, {ROOM: head}, {ROOM: head}]
    heads = [(await plane.registry.renew(Renew(agent_id=BOB, cursors=cursor))).heads for cursor in cursors]
    assert (heads, list(plane.memberships.agents())) == ([{ROOM: head}, {ROOM: head}, {}], [ADA])


async def test_a_group_that_is_about_to_be_launched_is_named() -> None:
    """A member whose group has no entry yet is told that there is nothing to fetch."""
    plane = Plane()
    await plane.join(ADA)
    await plane.memberships.add((ADA,), CommId("soon"))
    assert (await plane.registry.renew(Renew(agent_id=ADA))).heads == {CommId("soon"): 0}


async def test_who_was_not_launched_with_a_group_is_no_member_of_it() -> None:
    """A launch that lost a race against another leaves its members in the record; the registry clears that up."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.join(EVE)
    await plane.memberships.add((EVE,), ROOM)
    heads = [(await plane.registry.renew(Renew(agent_id=agent_id))).heads for agent_id in (EVE, BOB)]
    assert (heads, list(plane.memberships.groups_of(EVE))) == ([{}, {ROOM: 1}], [])
