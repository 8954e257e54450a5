"""Having agents join a group that is under way, as members want that have the floor."""

from __future__ import annotations

import pytest

from ioa.errors import IoaError, NoAgentError, NotFoundError
from ioa.group.events import MemberJoined
from ioa.group.requests import Accepted, InviteMember, LaunchGroup, Rejected, Sync
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.protocol.team import team_of
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane

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
async def test_agent_that_cannot_join_is_rejected(opened: Plane, about: dict[str, AgentId], expected: type[IoaError]) -> None:
    """And a stranger is told nothing of the group."""
    await opened.join(EVE)
    with pytest.raises(expected):
        await opened.setup.invite(INVITE.model_copy(update=about))


async def test_member_with_whose_role_the_state_could_grow_too_large_is_rejected() -> None:
    """Each member of the role has values of its own for the form, which the state contains."""
    form = {f"part{number}": "text?" for number in range(16)}
    ways = [{"to": "meet", "when": {"field": part}} for part in form]
    meet = {"name": "meet", "roles": ["host", "clerk"], "invites": True, "max": 1, "then": "write"}
    write = {"name": "write", "roles": ["clerk"], "form": form, "max": 1, "exits": [*ways, {"to": "end"}]}
    team = team_of({"team": "essay", "leader": "host", "roles": {"host": ADA, "clerk": BOB}, "nodes": [meet, write]})
    plane = Plane()
    await plane.join(ADA, BOB, EVE)
    await plane.accept(team=team)
    await plane.setup.launch(LaunchGroup(owner=ADA, members=(), goal_id=GOAL, ticket=TICKET, policy=team.policy.digest))
    answer = (await plane.setup.invite(INVITE.model_copy(update={"role": "clerk"}))).answer
    assert isinstance(answer, Rejected) and "might grow beyond 16,000 bytes" in answer.message
