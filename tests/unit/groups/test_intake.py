"""Where goals come in: each is one goal on record with a deadline that is armed, or a dead letter that says why."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from ioa.errors import NotYetError, UnavailableError
from ioa.group.requests import CancelGroup
from ioa.protocol import subjects
from ioa.protocol.goals import Artifact, Reason
from ioa.protocol.ids import LOCAL, AgentId, GoalId, GoalName, PoolId, UserId, comm_id_of_goal
from ioa.protocol.registry import Register
from ioa.protocol.tickets import is_ticket
from ioa.testing.manual_clock import NEW_YEAR
from tests.unit.group.scenario import card
from tests.unit.runtime.plane import ADA, BOB, GOAL, ROOM, SETTINGS, Plane


def order(**fields: object) -> bytes:
    """A goal as a user publishes it."""
    return json.dumps({"goal": "Count to ten.", "goal_id": GOAL, **fields}).encode()


async def test_goal_published_again_with_a_control_character_in_a_file_name_is_the_same_goal(plane: Plane) -> None:
    """The name is normalised when the goal is read, as the store does, so that both messages name the same file."""
    data = order(inputs=[{"name": "a\nb.csv", "text": "1,2"}, {"name": f"{'n' * 240}.csv", "text": "3"}])
    for identity in ("1", "2"):
        await plane.intake.accept(subjects.goal_of(LOCAL), data, identity)

    record = await plane.goals.find(comm_id_of_goal(GOAL))
    assert (record is not None and record.goal.inputs[0].name, plane.dead.letters) == ("a_b.csv", [])


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


async def test_a_sentence_published_twice_is_two_goals(plane: Plane) -> None:
    """Whoever publishes a text twice wants it done twice; an id says otherwise."""
    for identity in ("IOA_GOALS/1/x", "IOA_GOALS/2/x"):
        await plane.intake.accept(subjects.goal_of(LOCAL), b"Count to ten.", identity)
    assert len(plane.goals.all()) == 2


async def test_a_goal_published_again_under_its_id_is_the_same(plane: Plane) -> None:
    """The same id and content is no second goal, however much later, and a goal that has ended stays ended."""
    await plane.intake.accept(subjects.goal_of(LOCAL), order(timeout=60), "1")
    await plane.run_timers()
    waiting = list(plane.work.waiting())
    plane.clock.advance(timedelta(hours=1))
    await plane.intake.accept(subjects.goal_of(LOCAL), order(timeout=60), "2")
    await plane.run_timers()
    assert (plane.work.waiting(), len(await plane.entries()), await plane.reason()) == (waiting, 1, Reason.DEADLINE)


async def test_users_goals_of_one_id_are_several(plane: Plane) -> None:
    """An id is taken among the goals of its user alone: each goal is on record with its user, and waits for an agent."""
    for user in ("anna", "ben"):
        await plane.intake.accept(subjects.goal_of(UserId(user)), order(goal=f"Count for {user}."), user)
    names = [record.goal.name for record in plane.goals.all()]
    assert (names, plane.dead.letters) == ([GoalName(UserId("anna"), GOAL), GoalName(UserId("ben"), GOAL)], [])
    assert len({goal.comm_id for goal in plane.work.waiting()}) == len(set(plane.work.tickets.values())) == 2


async def test_another_goal_under_a_taken_id_is_a_conflict(plane: Plane) -> None:
    """The first goal goes on; the second is kept as a dead letter that says so."""
    await plane.intake.accept(subjects.goal_of(LOCAL), order(), "1")
    await plane.intake.accept(subjects.goal_of(LOCAL), order(goal="Count to eleven."), "2")
    [letter] = plane.dead.letters
    record = await plane.goals.find(ROOM)
    assert record is not None
    assert (letter.reason, GOAL in letter.why, record.goal.goal) == ("conflict", True, "Count to ten.")


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


async def test_a_goal_goes_to_the_pool_of_the_agent_it_names(plane: Plane) -> None:
    """A goal may name an agent or a pool, by its subject or in itself; its queue is made if need be."""
    await plane.registry.register(Register(card=card("ada").model_copy(update={"pool": PoolId("sums")})))
    await plane.intake.accept(subjects.goal_to(LOCAL, ADA), order(), "1")
    await plane.intake.accept(subjects.goal_to(LOCAL, PoolId("sums")), order(goal_id="goal-2"), "2")
    await plane.intake.accept(subjects.goal_of(LOCAL), order(goal_id="goal-3", agent="ada"), "3")
    assert [goal.goal_id for goal in plane.work.waiting(PoolId("sums"))] == ["goal-1", "goal-2", "goal-3"]
    assert (plane.work.waiting(), PoolId("sums") in plane.work.pools) == ([], True)


async def test_a_goal_for_an_agent_that_is_away_waits_for_it(plane: Plane) -> None:
    """An agent that is offline is not unknown."""
    await plane.join(BOB)
    plane.clock.advance(timedelta(minutes=1))
    await plane.intake.accept(subjects.goal_to(LOCAL, BOB), order(), "1")
    assert [goal.goal_id for goal in plane.work.waiting(PoolId("bob"))] == [GOAL]


async def test_goal_for_an_agent_that_never_registered_ends_after_ten_seconds(plane: Plane) -> None:
    """Its result names the agent. It ends once, and is in no queue."""
    with pytest.raises(UnavailableError, match="nobody") as refused:
        await plane.intake.accept(subjects.goal_to(LOCAL, AgentId("nobody")), order(), "1")
    assert (refused.value.retry_after, await plane.entries()) == (timedelta(seconds=1), [])
    plane.clock.advance(timedelta(seconds=10))
    for identity in ("1", "2"):
        await plane.intake.accept(subjects.goal_to(LOCAL, AgentId("nobody")), order(), identity)
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    assert (result.reason, "nobody" in result.content, plane.work.waiting()) == (Reason.NO_AGENT, True, [])
    assert len(await plane.entries()) == 1


async def test_a_goal_for_an_agent_that_registers_a_moment_later_waits_for_it(plane: Plane) -> None:
    """A goal may come before the agent that it is for."""
    with pytest.raises(UnavailableError):
        await plane.intake.accept(subjects.goal_to(LOCAL, BOB), order(), "1")
    plane.clock.advance(timedelta(seconds=1))
    await plane.join(BOB)
    await plane.intake.accept(subjects.goal_to(LOCAL, BOB), order(), "1")
    assert [goal.goal_id for goal in plane.work.waiting(PoolId("bob"))] == [GOAL]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (order(inputs=["nowhere"]), "unreadable"),
        (order(typo=1), "unreadable"),
        (order(goal="x" * 256_000), "too_large"),
    ],
)
async def test_a_refused_goal_with_an_id_has_a_result(plane: Plane, data: bytes, reason: str) -> None:
    """Whoever named the goal and waits for it is told why it was not accepted, besides the dead letter; the id is used up."""
    await plane.intake.accept(subjects.goal_of(LOCAL), data, "1")
    await plane.intake.accept(subjects.goal_of(LOCAL), data, "1")
    [letter] = plane.dead.letters
    result = await plane.results.get(GoalName(LOCAL, GOAL))
    assert result is not None
    assert (letter.reason, letter.data, result.reason, letter.why[:80] in result.content) == (reason, data, Reason.FAILED, True)
    assert len(await plane.entries()) == 1


async def test_rejected_goal_does_not_change_goal_with_same_id(plane: Plane) -> None:
    """A refused goal under the id of one that goes on is a dead letter and nothing more."""
    await plane.intake.accept(subjects.goal_of(LOCAL), order(), "1")
    await plane.intake.accept(subjects.goal_of(LOCAL), order(typo=1), "2")
    assert (len(plane.dead.letters), await plane.results.get(GoalName(LOCAL, GOAL)), len(plane.work.waiting())) == (1, None, 1)


async def test_unexpected_error_makes_dead_letter_and_result(plane: Plane) -> None:
    """An error of our own while a goal is read is kept with its kind, and the goal does not come back for ever."""

    async def fail(goal: GoalName, position: int, name: str, data: bytes, media_type: str) -> Artifact:
        raise ZeroDivisionError(f"of {name}")

    plane.files.keep = fail  # type: ignore[method-assign]
    await plane.intake.accept(subjects.goal_of(LOCAL), order(inputs=[{"name": "x", "text": "x"}]), "1")
    assert [(letter.reason, letter.why) for letter in plane.dead.letters] == [("failed", "ZeroDivisionError: of x")]
    assert await plane.reason() is Reason.FAILED


async def test_a_subject_and_a_payload_that_disagree_are_refused(plane: Plane) -> None:
    """A goal cannot go to two agents."""
    await plane.intake.accept(subjects.goal_to(LOCAL, ADA), order(agent="bob"), "1")
    assert [letter.reason for letter in plane.dead.letters] == ["unreadable"]


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


async def test_a_goal_that_is_led_is_not_offered_again(plane: Plane) -> None:
    """A redelivery after the group was opened wakes nobody."""
    await plane.join(ADA, BOB)
    await plane.intake.accept(subjects.goal_of(LOCAL), order(max_turns=10), "1")
    await plane.open(ADA, BOB)
    await plane.intake.accept(subjects.goal_of(LOCAL), order(max_turns=10), "1")
    assert len(plane.work.waiting()) == 1


async def test_a_goal_comes_back_until_it_has_ended_where_users_are_known(plane: Plane) -> None:
    """What is open counts among its user's open goals, and is accepted once; where nobody is asked who he is, nobody waits."""
    intake = plane.make_intake(plane.ports, users_are_known=True)
    for _ in range(2):
        with pytest.raises(NotYetError):
            await intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    assert len(plane.work.waiting()) == 1
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
    await intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    await plane.intake.accept_until_ended(subjects.goal_of(LOCAL), order(goal_id="another"), "2")
    assert [record.goal.goal_id for record in plane.goals.all()] == [GOAL, GoalId("another")]


async def test_a_goal_that_was_noted_as_open_behind_its_end_is_open_no_more_when_it_comes_back(plane: Plane) -> None:
    """Whoever looked after it as its group ended has written what he read before."""
    intake = plane.make_intake(plane.ports, users_are_known=True)
    with pytest.raises(NotYetError):
        await intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    noted = await plane.open_groups.find(ROOM)
    assert noted is not None
    await plane.setup.cancel(LOCAL, CancelGroup(goal_id=GOAL))
    await plane.open_groups.put(LOCAL, ROOM, noted)
    await intake.accept_until_ended(subjects.goal_of(LOCAL), order(), "1")
    assert await plane.open_groups.find(ROOM) is None
