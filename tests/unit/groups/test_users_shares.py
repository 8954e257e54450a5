"""Who fills what all users share is put off, and named, while others find room."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta

import pytest

from ioa.errors import NotYetError, RateLimitedError
from ioa.group.requests import CancelGroup
from ioa.ports.inspection import FILLING_QUEUE, FILLING_STORE
from ioa.ports.store_room import SUBJECT_BYTES, StoreRoom
from ioa.protocol import subjects
from ioa.protocol.goals import Reason
from ioa.protocol.ids import GoalId, GoalName, UserId
from ioa.protocol.named_teams import PutTeam
from ioa_groups.intake import Intake
from ioa_groups.refusals import ToldRefusals
from tests.contract.system_client.test_named_teams import debate
from tests.unit.runtime.plane import ADA, LEASE, Plane

ANNA, EVE = UserId("anna"), UserId("eve")
_FULL, _ROOMY = StoreRoom(0, 100_000), StoreRoom(90_000, 100_000)
_DIGEST = "0" * 64


async def _launch(plane: Plane, user: UserId, goal_id: str, stored_at: datetime | None = None) -> GoalName | None:
    data = json.dumps({"goal_id": goal_id, "goal": "x" * 2_000}).encode()
    return await plane.intake.accept(subjects.goal_to(user, ADA), data, f"{user}-{goal_id}", stored_at)


async def test_goals_of_who_fills_the_store_wait() -> None:
    """What is on record of him counts; others, who have little, go on, and so does a goal of his that was accepted before."""
    plane = Plane()
    await plane.join(ADA)
    plane.room.left = _ROOMY
    first = await _launch(plane, EVE, "one")
    plane.room.left = _FULL
    with pytest.raises(NotYetError, match="others need what is left"):
        await _launch(plane, EVE, "two")
    assert await _launch(plane, EVE, "one") == first
    plane.room.left = StoreRoom(0, 1_000_000)
    assert await _launch(plane, ANNA, "one") is not None
    assert [(one.caller, one.family) for one in plane.fills_store.slowed()] == [("eve", FILLING_STORE)]
    plane.room.left = _ROOMY
    assert await _launch(plane, EVE, "two") is not None


async def test_who_fills_the_store_by_many_small_goals_is_put_off_by_their_number() -> None:
    """The server keeps subjects in its memory: a day of goals of a kB, each cancelled at once, took it as much as all else."""
    plane = Plane()
    await plane.join(ADA)
    plane.room.left, accepted = StoreRoom(300_000, 2_000_000), 0
    with pytest.raises(NotYetError, match="others need what is left"):
        while True:
            assert await _launch(plane, EVE, f"g{accepted}") is not None
            accepted += 1
    assert 15 < accepted < 300_000 / (3 * SUBJECT_BYTES)


async def test_teams_of_who_fills_the_store_are_refused() -> None:
    """Versions too, until there is room; goals that are on record and teams count together."""
    plane = Plane()
    plane.room.left = _ROOMY
    await plane.teams.put(EVE, PutTeam(team=debate()))
    plane.room.left = StoreRoom(0, 10_000)
    with pytest.raises(RateLimitedError, match="goals and teams of eve"):
        await plane.teams.put(EVE, PutTeam(team=debate(most=3)))
    assert (await plane.teams.put(ANNA, PutTeam(team=debate("annas")))).version == 1


async def test_goals_of_who_fills_what_all_wait_in_are_refused() -> None:
    """With a result that says so, so that there is room for others; theirs are taken in, and nobody is refused while there is."""
    plane = Plane()
    await plane.join(ADA)
    plane.room.left, plane.room.of_users = _FULL, {EVE: 99_000, ANNA: 900}
    await plane.waiting.look()
    assert (await _launch(plane, EVE, "one"), await _launch(plane, ANNA, "one")) == (None, GoalName(ANNA, GoalId("one")))
    result = await plane.results.get(GoalName(EVE, GoalId("one")))
    assert result is not None
    assert (result.reason, "those of others find no room" in result.content) == (Reason.FAILED, True)
    assert [(one.caller, one.family) for one in plane.fills_queue.slowed()] == [("eve", FILLING_QUEUE)]
    assert await _launch(plane, EVE, "two") is None
    assert await plane.results.get(GoalName(EVE, GoalId("two"))) is None, "what is refused is stored, too: no more than may be"
    plane.room.left = _ROOMY
    await plane.waiting.look()
    assert await _launch(plane, EVE, "three") is not None


async def test_who_has_filled_the_store_is_told_of_what_is_refused_of_him() -> None:
    """By a result, a little of which anybody may have kept; however much he launches, that is all of it."""
    plane = Plane()
    await plane.join(ADA)
    plane.room.left = _ROOMY
    await _launch(plane, EVE, "one")
    plane.room.left = StoreRoom(0, 3_000_000)
    plane.kept.note(EVE, 50_000)
    told = [
        await plane.intake.accept(subjects.goal_to(EVE, ADA), json.dumps({"goal_id": f"bad-{one}", "goal": ""}).encode(), f"{one}")
        or await plane.results.get(GoalName(EVE, GoalId(f"bad-{one}")))
        for one in range(50)
    ]
    assert [one is not None for one in told] == [True] * 3 + [False] * 47
    assert "The goal was not accepted: " in told[0].content  # type: ignore[union-attr]
    plane.clock.advance(timedelta(days=2))
    assert await plane.intake.accept(subjects.goal_to(EVE, ADA), b'{"goal_id": "bad-x", "goal": ""}', "x") is None
    assert await plane.results.get(GoalName(EVE, GoalId("bad-x"))) is not None, "what was told long ago counts less"


async def test_whoever_waits_is_told_of_what_is_refused_beyond_that() -> None:
    """For some minutes, of each user so much; the same goal again is refused meanwhile, and taken in later where it may be."""
    plane = Plane()
    intake = Intake(plane.intake_ports, LEASE, users_are_known=True)
    await plane.join(ADA)
    plane.room.left = StoreRoom(0, 1_000)
    plane.kept.note(EVE, 50_000)
    for number in range(1_200):
        await intake.accept(subjects.goal_to(EVE, ADA), json.dumps({"goal_id": f"bad-{number}", "goal": ""}).encode(), f"{number}")
        await asyncio.sleep(0)  # nothing here waits for anything
    told = plane.passing.told
    assert (800 < len(told) <= 1_000, "was not accepted: " in told[GoalName(EVE, GoalId("bad-99")).comm_id].content) == (True, True)
    plane.room.left = _ROOMY
    again = subjects.goal_to(EVE, ADA), b'{"goal_id": "bad-99", "goal": "Say hello."}'
    assert await intake.accept(*again, "again") is None
    assert "was refused a moment ago" in plane.dead.letters[-1].why
    plane.clock.advance(timedelta(seconds=299))
    await plane.refusals.remove_old()
    assert len(told) > 800
    plane.clock.advance(timedelta(seconds=1))
    await plane.refusals.remove_old()
    assert not told
    assert await intake.accept(*again, "later") == GoalName(EVE, GoalId("bad-99"))


async def test_what_a_process_that_ended_told_is_over_in_time() -> None:
    """Nobody removes it by himself: it keeps its goal from being launched no longer than else."""
    before, plane = Plane(), Plane()
    await plane.join(ADA)
    name = GoalName(EVE, GoalId("bad"))
    told = ToldRefusals(plane.passing, before.clock, lambda: 0.0)
    await told.tell(name, "No.")
    after = ToldRefusals(plane.passing, plane.clock, lambda: 0.0)
    plane.clock.advance(timedelta(seconds=299))
    assert await after.is_told(name)
    plane.clock.advance(timedelta(seconds=1))
    assert not await after.is_told(name)
    assert await plane.results.get(name) is None


async def test_what_a_process_that_ended_told_is_removed_by_the_next() -> None:
    """In time, as what the next one has told itself; else it stood among the results for ever."""
    plane = Plane()
    for process in range(2):
        for number in range(3):
            await plane.refusals.tell(GoalName(EVE, GoalId(f"bad-{process}-{number}")), "No.")
            plane.clock.advance(timedelta(seconds=10))
    after = ToldRefusals(plane.passing, plane.clock, lambda: plane.clock.now().timestamp())
    await after.tell(GoalName(EVE, GoalId("new")), "No.")
    await after.learn()
    left = []
    for seconds in (239, 12, 60):
        plane.clock.advance(timedelta(seconds=seconds))
        await after.remove_old()
        left.append(len(plane.passing.told))
    assert left == [7, 5, 0]


async def test_a_goal_that_goes_on_is_not_told_as_refused() -> None:
    """Another goal by its id is refused; who waits for the first one is told how that ends, and nothing else."""
    plane = Plane()
    await plane.join(ADA)
    one = await _launch(plane, EVE, "one")
    plane.room.left = StoreRoom(0, 1_000)
    plane.kept.note_refusal(EVE, 10**9)
    assert await plane.intake.accept(subjects.goal_to(EVE, ADA), b'{"goal_id": "one", "goal": "Say bye."}', "again") is None
    assert "is taken by another goal" in plane.dead.letters[-1].why
    assert one is not None and one.comm_id not in plane.passing.told


async def test_whoever_waits_for_a_goal_that_nobody_can_work_on_is_told() -> None:
    """Unless it is on record, where its deadline ends it; what names nobody is told to nobody."""
    plane = Plane()
    await plane.join(ADA)
    assert await _launch(plane, ANNA, "one") is not None
    for subject, data in (
        (subjects.goal_of(ANNA), b'{"goal_id": "one", "goal": "Say hello."}'),
        (subjects.goal_of(ANNA), b'{"goal_id": "two", "goal": "Say hello."}'),
        ("ioa.v1.goal", b'{"goal_id": "three", "goal": "Say hello."}'),
    ):
        await plane.intake.give_up(subject, data, "x", RuntimeError("gone wrong"))
    assert [one.goal_id for one in plane.passing.told.values()] == ["two"]


async def _waits(intake: Intake, user: UserId, goal_id: str, size_bytes: int, *, copy: datetime | None = None) -> bool:
    """Whether a message of so many bytes stays where goals wait."""
    data = json.dumps({"goal_id": goal_id, "goal": "x" * 2_000}).encode()
    identity = f"{user}-{goal_id}-{copy}"
    try:
        await intake.see_through(subjects.goal_to(user, ADA), data, identity, copy, size_bytes)
    except NotYetError:
        return True
    return False


async def test_open_goals_of_one_user_keep_a_part_of_what_all_wait_in() -> None:
    """Nobody refuses those: a few large ones filled it for as long as they were open. What is beyond that waits until one ends."""
    plane = Plane()
    intake = Intake(plane.intake_ports, LEASE, users_are_known=True)
    await plane.join(ADA)
    plane.room.left = _ROOMY
    await plane.waiting.look()
    assert [await _waits(intake, EVE, goal, 15_000) for goal in ("one", "two", "one")] == [True] * 3
    assert await _waits(intake, ANNA, "one", 25_000)
    assert [record.goal.name for record in plane.goals.all()] == [GoalName(EVE, GoalId("one")), GoalName(ANNA, GoalId("one"))]
    await plane.setup.cancel(EVE, CancelGroup(goal_id=GoalId("one")))
    assert [await _waits(intake, EVE, goal, 15_000) for goal in ("one", "two")] == [False, True]
    assert GoalName(EVE, GoalId("two")) in [record.goal.name for record in plane.goals.all()]


async def test_a_copy_of_an_open_goal_takes_no_room_that_others_need() -> None:
    """As many as anybody published stayed as long as the goal was open. It goes on, by the message that it came by."""
    plane, second = Plane(), timedelta(seconds=1)
    intake = Intake(plane.intake_ports, LEASE, users_are_known=True)
    await plane.join(ADA)
    plane.room.left = _ROOMY
    await plane.waiting.look()
    published = plane.clock.now()
    assert await _waits(intake, EVE, "one", 9_000)
    plane.clock.advance(second)
    assert [await _waits(intake, EVE, "one", 9_000, copy=published + number * second) for number in (1, 2)] == [True, False]
    plane.room.left, plane.room.of_users = _FULL, {EVE: 99_000}
    await plane.waiting.look()
    assert not await _waits(intake, EVE, "one", 9_000, copy=published + second)
    assert await _waits(intake, EVE, "one", 9_000)
    assert ["and goes on" in letter.why for letter in plane.dead.letters] == [True, True]
    assert await plane.results.get(GoalName(EVE, GoalId("one"))) is None
