"""The first and the last entry of a log, as a member is told of them that asks for no more."""

from __future__ import annotations

import pytest

from ioa.errors import NotFoundError
from ioa.group.events import GroupLaunched, MemberLost
from ioa.group.requests import Sync
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion
from ioa.protocol.team import team_of
from tests.unit.group.scenario import launched_under
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane


async def test_who_asks_for_the_ends_of_a_log_is_told_no_more_than_who_reads_it_all() -> None:
    """Nothing of what is kept from it, nor of what others said beside whom it is still to speak; strangers are told nothing."""
    vote = {"name": "vote", "roles": ["player"], "turns": "together", "form": {"vote": "player"}, "then": "hide"}
    hide = {"name": "hide", "roles": ["player"], "heard_by": "leader", "max": 3}
    roles = {"chair": {"agent": "ada"}, "player": "any"}
    policy = team_of({"team": "t", "roles": roles, "leader": "chair", "nodes": [vote, hide]}).policy
    plane, story = Plane(), launched_under(policy, {"chair": [ADA], "player": [BOB, EVE]}, ADA, BOB, EVE)
    for agent_id in (ADA, BOB, EVE):
        await plane.join(agent_id)
    launch = plane.begin(ROOM, ADA, BOB, EVE)
    led = story.log[0].charter.model_copy(update={"comm_id": ROOM, "limits": launch.charter.limits})  # type: ignore[union-attr]
    await plane.ledgers[0].record(ROOM, launch.model_copy(update={"charter": led}))
    for who in (BOB, EVE, BOB, EVE):
        filled = {"fields": {"vote": who}} if (await plane.state()).turn == 1 else {}
        await plane.says(who, Discussion(content=f"of {who}", **filled))
        if filled and who == BOB:  # by where the group stands behind it Eve would be told that Bob has voted
            await plane.ledgers[0].record(ROOM, MemberLost(at=plane.clock.now(), agent_id=ADA))
        for reader in (ADA, BOB, EVE):
            whole = (await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=reader))).entries
            ends = [await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=reader, only=which)) for which in ("first", "last")]
            assert [(page.entries[0].seq, page.entries[0].entry, page.complete) for page in ends] == [
                (one.seq, one.entry, True) for one in (whole[0], whole[-1])
            ]
    assert isinstance(whole[0].entry.event, GroupLaunched)
    for which in ("first", "last"):
        with pytest.raises(NotFoundError):
            await plane.log_pages.sync(Sync(comm_id=ROOM, agent_id=AgentId("zoe"), only=which))
