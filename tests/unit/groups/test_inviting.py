"""Having agents join a group that is under way, as members want that have the floor."""

from __future__ import annotations

from ioa.group.requests import InviteMember, LaunchGroup, Rejected
from ioa.protocol.teams.team_file import team_of
from tests.unit.runtime.plane import ADA, BOB, EVE, GOAL, ROOM, TICKET, Plane

INVITE = InviteMember(comm_id=ROOM, by=ADA, turn=1, agent_id=EVE, why="Count with us.")


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
