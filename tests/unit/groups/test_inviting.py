"""Having agents join a group that is under way, as members want that have the floor."""

from __future__ import annotations

import pytest

from ioa.errors import IoaError, NoAgentError, NotFoundError
from ioa.group.events import MemberJoined, MemberLost
from ioa.group.requests import Accepted, InviteMember, Rejected, Sync
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from tests.unit.groups.test_membership import lose
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

INVITE = InviteMember(comm_id=ROOM, by=ADA, turn=1, agent_id=EVE, why="Count with us.")


async def talking() -> Plane:
    """Ada and Bob talk, and Eve is online."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.join(EVE)
    return plane


async def test_who_joins_reads_what_was_said_before() -> None:
    """Its record of the group is that of the others, from the launch on."""
    plane = await talking()
    await plane.says(ADA, Discussion(content="One.", next_speaker=BOB))
    await plane.says(BOB, Discussion(content="Two.", next_speaker=ADA))
    answer = (await plane.setup.invite(INVITE.model_copy(update={"turn": 3}))).answer
    assert isinstance(answer, Accepted)
    await plane.says(ADA, Discussion(content="Three.", next_speaker=EVE))
    records = [(await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=agent))).entries for agent in (BOB, EVE)]
    assert records[0] == records[1] and len(records[1]) == 5
    assert isinstance(records[1][3].entry.event, MemberJoined) and records[1][3].seq == answer.seq
    assert EVE in plane.memberships.agents()


async def test_asking_again_is_answered_as_the_first_time() -> None:
    """A repeated request adds the agent once. A router stores a membership that the interrupted request did not store."""
    plane = await talking()
    first = (await plane.setup.invite(INVITE)).answer
    await plane.memberships.remove(EVE, ROOM)
    assert (await plane.setup.invite(INVITE)).answer == first
    await plane.routers[0].fire_timer(ROOM)
    assert EVE in plane.memberships.agents()
    assert sum(isinstance(one.entry.event, MemberJoined) for one in await plane.entries()) == 1


async def test_what_the_group_refuses_is_told() -> None:
    """Who invites learns why, and nobody has joined."""
    plane = await talking()
    by_turn = (({"turn": 2}, "stale_turn"), ({"by": BOB}, "not_your_floor"))
    for about, code in (*by_turn, ({"agent_id": BOB}, "no_change"), ({"agent_id": ADA}, "no_change")):
        answer = (await plane.setup.invite(INVITE.model_copy(update=about))).answer
        assert isinstance(answer, Rejected) and answer.code == code
    assert EVE not in plane.memberships.agents()


@pytest.mark.parametrize(
    ("about", "expected"),
    [({"agent_id": AgentId("zoe")}, NoAgentError), ({"by": EVE}, NotFoundError)],
    ids=["not registered", "by a stranger"],
)
async def test_who_cannot_join_does_not(about: dict[str, AgentId], expected: type[IoaError]) -> None:
    """And a stranger is told nothing of the group."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.join(EVE)
    with pytest.raises(expected):
        await plane.setup.invite(INVITE.model_copy(update=about))


async def test_who_has_joined_is_lost_as_any_other() -> None:
    """The group learns of it."""
    plane = await talking()
    await plane.setup.invite(INVITE)
    await lose(plane, EVE, ADA, BOB)
    assert MemberLost in [type(stored.entry.event) for stored in await plane.entries()]
    assert (await plane.state()).living() == (ADA, BOB)
