"""The last entry of a log, requested alone by a member."""

from __future__ import annotations

import hashlib

import pytest

from ioa.errors import NotFoundError
from ioa.group.requests import Accepted, InviteMember, Rejected
from ioa.protocol.goals import Announced
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.protocol.setup.file_requests import PutFile
from ioa.protocol.teams.team_file import team_of
from tests.unit.group.scenario import launched_under
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane

ZOE = AgentId("zoe")


async def test_who_was_removed_learns_nothing_by_what_it_asks() -> None:
    """Whatever happens in the group meanwhile, whatever it says, asks and puts is answered alike: who asks as well may count."""
    plane = await _without_eve()
    told = [await _told(plane)]
    assert isinstance(await plane.says(ADA, Discussion(content="Let us ask Zoe.")), Accepted)
    turn, [floor] = (await plane.state()).turn, (await plane.state()).floor
    told.append(await _told(plane))
    asked = InviteMember(comm_id=ROOM, by=floor, turn=turn, agent_id=ZOE, role="player")
    assert isinstance((await plane.setup.invite(asked)).answer, Accepted)
    told.append(await _told(plane))
    assert told[0] == told[1] == told[2]
    assert told[0][-1] == (f"eve was removed from {ROOM}.", ())


async def _told(plane: Plane) -> list[object]:
    """All that Eve is told, who was removed, when she tries this and that."""
    data = b"x" * 10
    file = Announced(name="a.txt", media_type="text/plain", size_bytes=10, sha256=hashlib.sha256(data).hexdigest())
    found: list[object] = []
    for asking in (
        lambda: plane.setup.invite(InviteMember(comm_id=ROOM, by=EVE, turn=3, agent_id=ZOE, role="player")),
        lambda: plane.files.put(PutFile(agent_id=EVE, comm_id=ROOM, place="p1", file=file, data=data)),
    ):
        with pytest.raises(NotFoundError) as refused:
            await asking()
        found.append(refused.value.message)
    for turn in (1, 2, 3, 4):
        said = await plane.send(await plane.message(EVE, Discussion(content="Still here."), turn=turn))
        assert isinstance(said, Rejected)
        found.append((said.message, said.legal))
    return found


async def _without_eve() -> Plane:
    """Return a group that has removed Eve by its votes; Zoe may join it."""
    vote = {
        "name": "vote",
        "roles": ["player"],
        "turns": "together",
        "form": {"vote": "player"},
        "exits": [{"to": "talk", "remove": {"field": "vote"}}],
    }
    talk = {"name": "talk", "roles": ["player"], "invites": True, "max": 30}
    policy = team_of({"team": "t", "roles": {"player": "any"}, "nodes": [vote, talk]}).policy
    story, plane = launched_under(policy, {"player": [ADA, BOB, EVE]}, ADA, BOB, EVE), Plane()
    for agent_id in (ADA, BOB, EVE, ZOE):
        await plane.join(agent_id)
    launch = plane.begin(ROOM, ADA, BOB, EVE)
    led = story.log[0].charter.model_copy(update={"comm_id": ROOM, "limits": launch.charter.limits})  # type: ignore[union-attr]
    await plane.ledgers[0].record(ROOM, launch.model_copy(update={"charter": led}))
    for who in (ADA, BOB, EVE):
        await plane.says(who, Discussion(content="Eve.", fields={"vote": EVE}))
    assert (await plane.state()).hearing == (ADA, BOB)
    return plane
