"""Questions of groups to their users, through group setup and routers: one answer counts, whoever is restarted meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ioa.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from ioa.group.requests import AnswerQuestion
from ioa.group.state import Awaiting
from ioa.protocol.ids import LOCAL, CommId, TaskId, UserId, comm_id_of_task
from ioa.protocol.messages import AskUser, Decision, Phase, SyncTaskAssignment
from tests.unit.group.scenario import specs
from tests.unit.runtime.plane import ADA, BOB, EVE, ROOM, Plane, open_task

TASK = TaskId("t1-1")
NESTED = comm_id_of_task(ROOM, TASK)


def question(plane: Plane, minutes: float = 5) -> AskUser:
    """A question that waits for some minutes."""
    until = plane.clock.now() + timedelta(minutes=minutes)
    return AskUser(text="Shall I?", options=("yes", "no"), default="no", until=until)


async def asked() -> Plane:
    """A group whose user is asked."""
    plane = Plane()
    await plane.open(ADA, BOB)
    await plane.says(ADA, question(plane))
    return plane


async def test_the_user_answers_and_nobody_else() -> None:
    """The user of the goal is asked; another one, a wrong answer, and one to another group are refused."""
    plane = await asked()
    turn = (await plane.state()).turn
    request = AnswerQuestion(comm_id=ROOM, turn=turn, answer="yes")
    with pytest.raises(ForbiddenError, match="a goal of local"):
        await plane.setup.answer(UserId("eve"), request)
    with pytest.raises(InvalidInputError, match="none of the options: yes, no"):
        await plane.setup.answer(LOCAL, request.model_copy(update={"answer": "perhaps"}))
    with pytest.raises(NotFoundError):
        await plane.setup.answer(LOCAL, request.model_copy(update={"comm_id": CommId("elsewhere")}))
    await plane.setup.answer(LOCAL, request)
    assert (await plane.state()).floor_holder == ADA
    with pytest.raises(ConflictError):
        await plane.setup.answer(LOCAL, request)


async def test_a_question_waits_through_a_restart_of_routers_and_ends_by_its_timer() -> None:
    """Whoever looks at the group next arms its time again, and the default stands, once."""
    plane = await asked()
    for ledger in plane.ledgers:
        ledger.forget()
    await plane.routers[1].check_open(ROOM)
    plane.clock.advance(timedelta(minutes=5))
    await plane.fire_due(1)
    await plane.routers[0].fire_timer(ROOM)
    state = await plane.state()
    assert (state.phase, state.floor_holder, len(await plane.entries())) == (Phase.DISCUSSING, ADA, 3)
    assert await plane.replayed() == [stored.entry.state for stored in await plane.entries()]


async def test_a_nested_team_asks_who_gave_out_its_task_and_goes_on_with_the_answer() -> None:
    """The parent holds the question; its assigner answers without the floor, and the team is told."""
    plane = await nested()
    await plane.says(ADA, Decision(task_id=TASK, choice="yes"))
    team = await plane.state(NESTED)
    assert (team.phase, team.floor_holder) == (Phase.DISCUSSING, BOB)


async def nested() -> Plane:
    """A nested team of Bob's that has asked."""
    plane = Plane()
    await plane.open(ADA, BOB, EVE)
    await plane.says(ADA, SyncTaskAssignment(tasks=specs(("t1-1:bob",))))
    await plane.nest("t1-1", BOB, EVE)
    await plane.says(BOB, question(plane), comm_id=NESTED)
    held = open_task(await plane.state(), "t1-1").of_team
    assert held is not None and held.text == "Shall I?"
    return plane


async def test_a_nested_teams_question_is_answered_in_its_parent_alone() -> None:
    """Two answers would count else: the goal's user is told where it waits, and answers there."""
    plane = await nested()
    turn = (await plane.state(NESTED)).turn
    with pytest.raises(ForbiddenError, match=f"task t1-1 of {ROOM}"):
        await plane.setup.answer(LOCAL, AnswerQuestion(comm_id=NESTED, turn=turn, answer="yes"))
    await plane.setup.answer(LOCAL, AnswerQuestion(comm_id=ROOM, task_id=TASK, number=1, answer="yes"))
    assert (await plane.state(NESTED)).floor_holder == BOB


async def test_what_a_router_owed_that_died_in_between_is_done_by_the_next() -> None:
    """The question, and the answer, follow from the states: a second look asks and tells nobody twice."""
    plane = await nested()
    for comm_id in (NESTED, ROOM):
        await plane.routers[1].fire_timer(comm_id, again=True)
    (await plane.entries())
    before = len(await plane.entries())
    await plane.says(ADA, Decision(task_id=TASK, choice="yes"))
    for comm_id in (NESTED, ROOM):
        await plane.routers[1].fire_timer(comm_id, again=True)
    counted = [one for one in await plane.entries(NESTED) if one.entry.event.type == "question_answered"]
    assert (len(counted), len(await plane.entries()) - before) == (1, 1)


async def test_lost_answer_reaches_the_nested_group_again() -> None:
    """A server that restarts may have lost the last entries of a single log."""
    plane = await nested()
    await plane.says(ADA, Decision(task_id=TASK, choice="yes"))
    plane.log._entries[NESTED].pop()
    assert isinstance((await plane.state(NESTED)).stage, Awaiting)
    for ledger in plane.ledgers:
        ledger.forget()
    await plane.routers[0].fire_timer(ROOM)
    assert (await plane.state(NESTED)).floor_holder == BOB


async def test_a_team_takes_its_default_whatever_its_parent_does() -> None:
    """No parent holds a team up: its own timer ends the question, and an answer is then too late."""
    plane = await nested()
    plane.clock.advance(timedelta(minutes=5))
    await plane.routers[0].fire_timer(NESTED)
    assert (await plane.state(NESTED)).floor_holder == BOB
    await plane.says(ADA, Decision(task_id=TASK, choice="yes"))
    assert not isinstance((await plane.state(NESTED)).stage, Awaiting)
