"""The contract of the inspection that `ioa doctor` uses."""

from __future__ import annotations

from ioa.adapters.nats.streams.topology import STREAMS
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.ids import GoalId
from ioa_testkit.planes import Plane
from tests.rig.deadline import eventually


async def test_a_sound_system_shows_no_ill(plane: Plane) -> None:
    """The server reports its version and sizes, no stream is missing, and only services that run answer."""
    inspection = plane.inspection
    standing = await inspection.standing()
    assert (inspection.server_version[:2], inspection.max_payload_bytes) == ("2.", 1024 * 1024)
    assert standing is not None
    assert (standing.missing, {stream.name for stream in standing.streams}) == ((), {*STREAMS})
    services = ("ioa-registry", "ioa-discovery", "ioa-groups", "ioa-router", "ioa-kitchen")
    assert [await inspection.answers(service) for service in services] == [True, True, True, True, False]
    assert await inspection.system.agents() == []


async def test_dead_letters_are_counted_by_their_reason(plane: Plane) -> None:
    """Of each reason the newest is shown, by the number that reads it."""
    client, inspection = plane.client, plane.inspection
    assert list(await inspection.dead_letter_kinds()) == []
    for text in ("Count to ten.", "Count to eleven.", "Count to twelve."):
        await client.submit(GoalOrder(goal=text, goal_id=GoalId("goal-1")))
    page = await eventually(lambda: client.dead_letters(limit=5), lambda found: len(found.letters) == 2)
    [kind] = await inspection.dead_letter_kinds()
    assert (kind.reason, kind.count, kind.newest) == ("conflict", 2, page.letters[0])
    assert kind.newest is not None and kind.newest.subject == "ioa.v1.goal.local" and "is taken by another goal" in kind.newest.why
