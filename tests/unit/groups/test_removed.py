"""Members that a policy has removed: what they are told of the group, and what not."""

from __future__ import annotations

from ioa.group.requests import Sync
from ioa.protocol.messages import Discussion
from ioa.protocol.team import team_of
from tests.unit.group.scenario import launched_under
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane


async def test_who_was_removed_is_told_that_and_nothing_behind_it() -> None:
    """Neither by pushes nor by asking for the log, however often; the others are told all."""
    vote = {
        "name": "vote",
        "roles": ["player"],
        "turns": "together",
        "form": {"vote": "player"},
        "exits": [{"to": "end", "remove": {"field": "vote"}}],
    }
    policy = team_of({"team": "t", "roles": {"player": "any"}, "nodes": [vote]}).policy
    story, plane = launched_under(policy, {"player": [ADA, BOB, EVE]}, ADA, BOB, EVE), Plane()
    launch = plane.begin(ROOM, ADA, BOB, EVE)
    led = story.log[0].charter.model_copy(update={"comm_id": ROOM, "limits": launch.charter.limits})  # type: ignore[union-attr]
    await plane.ledgers[0].record(ROOM, launch.model_copy(update={"charter": led}))
    for who in (ADA, BOB, EVE):
        await plane.says(who, Discussion(content="Eve.", fields={"vote": EVE}))
    removing = (await plane.entries())[-1].seq
    assert (await plane.state()).hearing == (ADA, BOB)
    plane.clock.advance(launch.charter.limits.conclusion_timeout)
    await plane.routers[0].fire_timer(ROOM)
    last = (await plane.entries())[-1].seq
    for after, told in ((0, [1, 2, 3, removing]), (removing, [])):
        page = await plane.setup.sync(Sync(comm_id=ROOM, agent_id=EVE, after=after))
        assert ([entry.seq for entry in page.entries], page.complete, page.head) == (told, True, removing)
    page = await plane.setup.sync(Sync(comm_id=ROOM, agent_id=BOB))
    assert (page.entries[-1].seq, page.head) == (last, last)
