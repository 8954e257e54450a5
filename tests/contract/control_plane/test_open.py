"""What the records of memberships and of what is open promise: complete pages whatever is removed, and nothing left behind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from nats.aio.client import Client

from ioa.adapters.nats.stores.open_group_store import NatsMemberships, NatsOpenGroups
from ioa.adapters.nats.streams.stream import Stream, stream_names
from ioa.adapters.nats.streams.topology import MEMBERS, OPEN, STREAMS
from ioa.errors import UnavailableError
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId
from ioa.protocol.setup.open_groups import OpenGroup
from tests.unit.group.scenario import START

ADA, BOB, EVE = AgentId("ada"), AgentId("bob"), AgentId("eve")
ROOM, OTHER = CommId("room"), CommId("other")
GROUP = OpenGroup(goal_id=GoalId("goal-1"), deadline=START)


@pytest.fixture
def memberships(client: Client) -> NatsMemberships:
    """Nobody is in any group."""
    return NatsMemberships(client)


@pytest.fixture
def open_groups(client: Client) -> NatsOpenGroups:
    """Nothing is open."""
    return NatsOpenGroups(client)


async def _listed(open_groups: NatsOpenGroups, limit: int) -> list[Sequence[CommId]]:
    """All pages of what is open."""
    pages = list[Sequence[CommId]]()
    after: int | None = 0
    while after is not None:
        page, after = await open_groups.page(after=after, limit=limit)
        pages.append(page)
    return pages


async def test_memberships_are_numbered_in_their_order(memberships: NatsMemberships) -> None:
    """Numbers rise; the newest is the last of the page; another agent's do not show."""
    await memberships.add((ADA, BOB), ROOM)
    await memberships.add((ADA,), OTHER)
    page = await memberships.page(ADA, after=0, limit=5)
    numbers = [one.number for one in page.memberships]
    assert ([one.comm_id for one in page.memberships], numbers, page.complete) == ([ROOM, OTHER], sorted(set(numbers)), True)
    assert (await memberships.newest(ADA), list(await memberships.list_groups(BOB))) == (numbers[-1], [ROOM])


async def test_memberships_are_read_from_behind_a_number(memberships: NatsMemberships) -> None:
    """Pages follow each other by number, and say when there is nothing more."""
    for number in range(5):
        await memberships.add((ADA, BOB), CommId(f"g{number}"))
    first = await memberships.page(ADA, after=0, limit=3)
    second = await memberships.page(ADA, after=first.memberships[-1].number, limit=3)
    third = await memberships.page(ADA, after=second.memberships[-1].number, limit=3)
    pages = [([one.comm_id for one in page.memberships], page.complete) for page in (first, second, third)]
    assert pages == [(["g0", "g1", "g2"], False), (["g3", "g4"], True), ([], True)]


async def test_a_membership_is_removed_for_good(memberships: NatsMemberships) -> None:
    """A removed membership is in no page; removing a missing one has no effect; adding a stored one keeps its number."""
    await memberships.add((ADA, BOB), ROOM)
    await memberships.add((ADA,), OTHER)
    await memberships.remove(ADA, OTHER)
    await memberships.remove(BOB, OTHER)
    assert (list(await memberships.list_groups(ADA)), list(await memberships.list_groups(BOB))) == ([ROOM], [ROOM])
    newest = await memberships.newest(BOB)
    await memberships.add((BOB, EVE), ROOM)
    assert (await memberships.newest(BOB), list(await memberships.list_groups(EVE))) == (newest, [ROOM])


async def test_what_is_open_is_found_and_listed(open_groups: NatsOpenGroups) -> None:
    """A group is found as it was noted and listed once, in the order of noting, until it is removed."""
    for comm_id in (ROOM, OTHER, ROOM):
        await open_groups.put(LOCAL, comm_id, GROUP)
    listed, found = await _listed(open_groups, 10), await open_groups.find(OTHER)
    await open_groups.remove(OTHER)
    await open_groups.remove(OTHER)
    assert (listed, found, await open_groups.find(OTHER), await _listed(open_groups, 10)) == (
        [[OTHER, ROOM]],
        GROUP,
        None,
        [[ROOM]],
    )


async def test_an_entry_of_the_open_index_is_not_replaced_by_adding_it(open_groups: NatsOpenGroups) -> None:
    """An entry of an offered goal keeps its offers when the group is launched."""
    waiting = GROUP.model_copy(update={"waits": True})
    assert await open_groups.add(LOCAL, ROOM, waiting)
    assert not await open_groups.add(LOCAL, ROOM, GROUP)
    assert await open_groups.find(ROOM) == waiting


async def test_pages_are_complete_whatever_is_removed(open_groups: NatsOpenGroups) -> None:
    """Removing what was listed moves nothing that was not: every group that stays is on exactly one page."""
    for number in range(9):
        await open_groups.put(LOCAL, CommId(f"g{number}"), GROUP)
    seen: list[CommId] = []
    after: int | None = 0
    while after is not None:
        page, after = await open_groups.page(after=after, limit=2)
        seen += page
        for comm_id in page:
            await open_groups.remove(comm_id)
    assert seen == [f"g{number}" for number in range(9)]


async def test_nothing_is_left_of_what_was_removed(client: Client) -> None:
    """A bucket is as large as what is open: no marker stays."""
    memberships, open_groups = NatsMemberships(client), NatsOpenGroups(client)
    await memberships.add((ADA, BOB), ROOM)
    await open_groups.put(LOCAL, ROOM, GROUP)
    await memberships.remove(ADA, ROOM)
    await open_groups.remove(ROOM)
    streams = [await client.jetstream().stream_info(f"KV_{bucket}") for bucket in (MEMBERS, OPEN)]
    assert [info.state.messages for info in streams] == [1, 0]


async def test_a_stream_that_is_gone_is_out_of_reach(client: Client) -> None:
    """Whoever pages through a stream that is not there is told that it may come back."""
    assert set(STREAMS) <= await stream_names(client)
    await client.jetstream().delete_stream(f"KV_{OPEN}")
    assert f"KV_{OPEN}" not in await stream_names(client)
    with pytest.raises(UnavailableError):
        await Stream(client, f"KV_{OPEN}").page(f"$KV.{OPEN}.*.*", after=0, limit=1)
    with pytest.raises(UnavailableError):
        await Stream(client, f"KV_{OPEN}").subject_counts()
