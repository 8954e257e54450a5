"""Where goals come in: each is one goal on record with a deadline that is armed, or a dead letter that says why."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from ioa.errors import NotYetError, UnavailableError
from ioa.group.requests import CancelGoal
from ioa.protocol import subjects
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, UserId, comm_id_of_goal
from ioa.protocol.setup.tickets import is_ticket
from ioa.testing.manual_clock import NEW_YEAR
from tests.unit.runtime.plane import GOAL, ROOM, SETTINGS, Plane


def order(**fields: object) -> bytes:
    """A goal as a user publishes it."""
    return json.dumps({"goal": "Count to ten.", "goal_id": GOAL, **fields}).encode()


async def test_plain_text_is_a_goal(plane: Plane) -> None:
    """A sentence becomes a goal with an id of its own that waits for anybody, with its deadline armed."""
    await plane.intake.accept(subjects.goal_of(LOCAL), b"  Count to ten.\n", "IOA_GOALS/1/x")
    [record] = plane.goals.all()
    comm_id = comm_id_of_goal(record.goal.goal_id)
    assert (record.goal.goal, plane.work.waiting()) == ("Count to ten.", [record.goal])
    assert plane.timers.pending(comm_id) == [NEW_YEAR + timedelta(hours=1)]


@pytest.mark.parametrize("away", ["timers", "work"])
async def test_goal_whose_first_delivery_failed_is_accepted_once(plane: Plane, away: str) -> None:
    """It keeps its time of acceptance, is offered once with the ticket of its record, and has its deadline armed."""
    getattr(plane, away).reachable = False
    with pytest.raises(UnavailableError):
        await plane.intake.accept(subjects.goal_of(LOCAL), b"Count to ten.", "IOA_GOALS/1/x")
    getattr(plane, away).reachable = True
    plane.clock.advance(timedelta(seconds=1))
    await plane.intake.accept(subjects.goal_of(LOCAL), b"Count to ten.", "IOA_GOALS/1/x")
    [record] = plane.goals.all()
    assert (record.accepted_at, len(plane.work.waiting()), plane.dead.letters) == (NEW_YEAR, 1, [])
    assert plane.timers.pending(record.goal.comm_id) and record.ticket_digest is not None
    assert [is_ticket(ticket, record.ticket_digest) for ticket in plane.work.tickets.values()] == [True]


@pytest.mark.parametrize(
    "data",
    [
        b"   ",
        b"\xff\xfe",
        b'{"goal": "x", "goal_id": "a b"}',
        b'{"goal": "x", "timeout": 1e99}',
        b'{"goal": "\\ud800"}',
        b'{"goal": ' + b"[" * 100_000,
    ],
)
async def test_what_cannot_be_read_is_a_dead_letter(plane: Plane, data: bytes) -> None:
    """A malformed message becomes a dead letter with its reason, without other effects."""
    await plane.intake.accept(subjects.goal_of(LOCAL), data, "1")
    [letter] = plane.dead.letters
    assert (letter.reason, letter.data, bool(letter.why)) == ("unreadable", data, True)
    assert (list(plane.goals.all()), plane.timers.next_at()) == ([], None)


async def test_unexpected_error_makes_dead_letter_and_result(plane: Plane) -> None:
    """An error of our own while a goal is read is kept with its kind, and the goal does not come back for ever."""

    async def fail(goal: GoalName, position: int, name: str, data: bytes, media_type: str) -> Artifact:
        raise ZeroDivisionError(f"of {name}")

    plane.files.keep = fail  # type: ignore[method-assign]
    await plane.intake.accept(subjects.goal_of(LOCAL), order(inputs=[{"name": "x", "text": "x"}]), "1")
    assert [(letter.reason, letter.why) for letter in plane.dead.letters] == [("failed", "ZeroDivisionError: of x")]
    assert await plane.reason() is Reason.FAILED


async def test_inputs_become_references(plane: Plane) -> None:
    """Small texts given inline are stored as files; references stay as they are."""
    stored = await plane.artifacts.put("shared/sales", "sales.csv", b"a,b\n", "text/csv")
    inputs = [{"name": "n ö.txt", "text": "Grüße"}, stored.model_dump()]
    await plane.intake.accept(subjects.goal_of(LOCAL), order(inputs=inputs), "1")
    record = await plane.goals.find(ROOM)
    assert record is not None
    inline, named = record.goal.inputs
    assert (await plane.artifacts.get(inline), inline.name, inline.media_type) == ("Grüße".encode(), "n ö.txt", "text/plain")
    assert named == stored


async def test_texts_that_come_with_goals_count_as_what_is_uploaded(plane: Plane) -> None:
    """Who sends 200,000 characters with each of his goals fills his share of the store, and is told so; others have room."""

    async def send(user: UserId, name: int) -> None:
        data = order(goal_id=f"g{name}", inputs=[{"name": "a.txt", "text": "x" * 200_000}])
        await plane.intake.accept(subjects.goal_of(user), data, f"{user}{name}")

    for name in range(SETTINGS.user_files_bytes // 200_000 + 1):
        await send(UserId("eve"), name)
    await send(UserId("anna"), 1)
    [letter] = plane.dead.letters
    result = await plane.results.get(GoalName(UserId("eve"), GoalId("g20")))
    assert (letter.reason, "user-eve stores 4,000,000 of 4,000,000 bytes" in letter.why) == ("too_large", True)
    assert result is not None and result.reason is Reason.FAILED
    assert len([one for one in plane.goals.all() if one.goal.user == "anna"]) == 1


async def test_a_goal_comes_back_until_it_has_ended_where_users_are_known() -> None:
    """What is open counts among its user's open goals, and is accepted once; where nobody is asked who he is, nobody waits."""
    plane = Plane(users_are_known=True)
    for _ in range(2):
        with pytest.raises(NotYetError):
            await plane.intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    assert len(plane.work.waiting()) == 1
    await plane.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL))
    await plane.intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    await Plane().intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "2")


async def test_a_goal_that_was_noted_as_open_behind_its_end_is_open_no_more_when_it_comes_back() -> None:
    """Whoever looked after it as its group ended has written what he read before."""
    plane = Plane(users_are_known=True)
    with pytest.raises(NotYetError):
        await plane.intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    noted = await plane.open_groups.find(ROOM)
    assert noted is not None
    await plane.setup.cancel(LOCAL, CancelGoal(goal_id=GOAL))
    await plane.open_groups.put(LOCAL, ROOM, noted)
    await plane.intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    assert await plane.open_groups.find(ROOM) is None
