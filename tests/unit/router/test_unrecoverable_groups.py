"""Groups whose logs cannot be read: their goals end all the same, and nobody else is held up."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from ioa.errors import UnavailableError
from ioa.group.requests import CancelGoal
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, CommId, GoalName
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.protocol.subjects import timer
from ioa.runtime.recorded import RecordedDeadLetters
from tests.rig.memory_delivery import RefusedMessage
from tests.unit.runtime.plane import ADA, BOB, GOAL, ROOM, Plane


async def fire(plane: Plane) -> None:
    """Bring every due timer to a router, as its process does."""
    for comm_id in plane.timers.take_due():
        try:
            await plane.routers[0].fire_timer(comm_id)
        except UnreadableEntryError as error:
            await plane.routers[0].end_unreadable(error, plane.clock.now())


async def test_a_goal_whose_group_cannot_be_read_ends_at_its_deadline(plane: Plane) -> None:
    """Until the deadline there is no result; then there is one, once, that says which entry cannot be read."""
    await plane.open(ADA, BOB, timeout=timedelta(minutes=5))
    seq = plane.log.spoil(ROOM)
    plane.clock.advance(timedelta(minutes=2))
    await fire(plane)
    before = await plane.reason()
    plane.clock.advance(timedelta(minutes=3))
    for _ in range(2):
        await fire(plane)
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    assert (before, result.reason, f"Entry {seq}" in result.content, plane.timers.next_at()) == (None, Reason.FAILED, True, None)


async def test_a_timer_of_nothing_on_record_is_done(plane: Plane) -> None:
    """A nested team, or a stranger's group, has no goal to be ended."""
    error = UnreadableEntryError("Entry 1 cannot be read.", comm_id=CommId("stranger"), seq=1)
    await plane.routers[0].end_unreadable(error, plane.clock.now())
    assert (plane.timers.next_at(), await plane.reason()) == (None, None)


async def test_the_timer_of_an_open_group_is_never_dropped(opened: Plane) -> None:
    """However often acting on it failed; those of ended groups, of garbage, and of none at all may go."""
    with pytest.raises(UnavailableError, match="stays"):
        await opened.routers[0].check_removable(timer(ROOM))
    await opened.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL))
    opened.log.spoil(CommId("garbage"))
    for subject in (timer(ROOM), timer(CommId("garbage")), timer(CommId("nowhere")), "ioa.v1.comm.a$b.timer"):
        await opened.routers[0].check_removable(subject)


async def test_an_unreadable_entry_is_logged_and_stored_once(plane: Plane) -> None:
    """A copy lies where it can be looked at, by whatever process and however often it is met."""
    error = UnreadableEntryError("Entry 7 cannot be read.", comm_id=ROOM, seq=7, data=b"garbage")
    with capture_logs() as lines:
        for _ in range(3):
            await plane.ports.dead.put_unreadable(error)
    await RecordedDeadLetters(plane.dead, plane.audit).put_unreadable(error)
    assert (plane.dead.letters, len(lines)) == (
        [RefusedMessage(DeadReason.UNREADABLE_ENTRY, "Entry 7 cannot be read.", f"ioa.v1.comm.{ROOM}.log", b"garbage")],
        1,
    )


async def test_an_effect_that_never_can_be_carried_out_holds_up_no_other(opened: Plane) -> None:
    """An ended team whose parent cannot be written to owes the world the rest all the same, and its timer comes to rest."""

    async def refuse(result: object) -> bool:
        raise ValueError("too large")

    publish, opened.results.publish = opened.results.publish, refuse  # type: ignore[method-assign]
    await opened.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL))
    await opened.run_timers()
    opened.results.publish = publish  # type: ignore[method-assign]
    await opened.ledgers[0].settle(await opened.state())
    assert await opened.reason() is Reason.CANCELLED
