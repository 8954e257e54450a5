"""Questions of tasks to their assigner or to the user of the goal."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from ioa.agent.task_context import TaskContext
from ioa.client.documents import OpenQuestion, open_questions
from ioa.group.requests import AnswerQuestion
from ioa.protocol.ids import LOCAL, TaskId, comm_id_of_goal
from ioa.protocol.messages import SyncTaskAssignment, TaskOutcome
from tests.rig.deadline import eventually
from tests.unit.agent.company import GOAL, T1, Company, leading, task

ROOM = comm_id_of_goal(GOAL.goal_id)
CHOICE: dict[str, Any] = {"options": ("red", "blue"), "default": "red"}


async def _question(company: Company, number: int = 1) -> OpenQuestion:
    """What the task asks, as soon as it does."""

    async def asked() -> list[OpenQuestion]:
        head = await company.network.plane.log.last(ROOM)
        return [] if head is None else [one for one in open_questions(head.entry.state) if one.item.endswith(f".{number}")]

    (question,) = await eventually(asked, lambda found: len(found) == 1)
    return question


async def _answer(company: Company, answer: str, number: int = 1) -> None:
    request = AnswerQuestion(comm_id=ROOM, task_id=T1, number=number, answer=answer)
    await company.network.plane.setup.answer(LOCAL, request)


async def test_a_task_asks_and_goes_on_with_the_answer(company: Company) -> None:
    """One question after the other, each answered by the goal's user; the same one again is answered at once."""

    async def work(words: str, ctx: TaskContext) -> str:
        colour = await ctx.ask("Which colour?", **CHOICE)
        name = await ctx.ask("Whose?", default="nobody's", role="operator")
        return f"{colour}, {name}, {await ctx.ask('Which colour?', **CHOICE)}"

    await company.give_task(work)
    asked = await _question(company)
    assert (asked.text, asked.asker, asked.options, asked.role) == ("Which colour?", "worker", ("red", "blue"), None)
    await _answer(company, "blue")
    assert (await _question(company, 2)).role == "operator"
    await _answer(company, "Ann's", 2)
    assert (await company.task_result(ROOM)).task_conclusion == "blue, Ann's, blue"


async def test_a_task_that_is_run_again_is_not_asked_twice(company: Company) -> None:
    """An agent that dies while its question waits finds it again, with the answer that came meanwhile."""
    attempts: list[int] = []

    def work(words: str, ctx: TaskContext) -> str:
        attempts.append(ctx.attempt)
        return ctx.ask("Which colour?", **CHOICE).result()

    await company.give_task(work)
    await _question(company)
    await company.crash("worker")
    await _answer(company, "blue")
    await company.restart("worker")
    assert ((await company.task_result(ROOM)).task_conclusion, attempts) == ("blue", [1, 2])
    entries = await company.network.plane.log.read(ROOM, after=0, limit=100)
    kinds = [getattr(stored.entry.event, "message", None) for stored in entries]
    assert sum(one is not None and one.payload.type == "TASK_QUESTION" for one in kinds) == 1


async def test_invalid_question_fails_the_task_with_its_reason(company: Company) -> None:
    """A default that is no option is rejected."""

    async def work(words: str, ctx: TaskContext) -> str:
        return await ctx.ask("Which colour?", options=("red",), default="blue", within=timedelta(minutes=1))

    await company.give_task(work)
    result = await company.task_result(ROOM)
    assert (result.outcome, "none of its options" in result.task_conclusion) == (TaskOutcome.FAILED, True)


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
async def test_tasks_that_wait_for_answers_leave_their_slots_to_others(company: Company, is_sync: bool) -> None:
    """Days may pass: an agent all of whose slots ask does its next task meanwhile."""
    *asking, quick = [task(f"t{number}") for number in range(1, 6)]  # an agent has four slots

    def ask(words: str, ctx: TaskContext) -> str:
        return words if words == quick.task_desc else ctx.ask("Which colour?", **CHOICE).result()

    async def ask_async(words: str, ctx: TaskContext) -> str:
        return words if words == quick.task_desc else await ctx.ask("Which colour?", **CHOICE)

    await company.give_task(ask if is_sync else ask_async, leading(SyncTaskAssignment(tasks=(*asking, quick))))
    assert (await company.task_result(ROOM, quick.task_id)).task_conclusion == quick.task_desc
    for one in asking:
        await eventually(partial(_asks, company, one.task_id))  # the last one of them may still be on its way
        request = AnswerQuestion(comm_id=ROOM, task_id=one.task_id, number=1, answer="blue")
        await company.network.plane.setup.answer(LOCAL, request)
    assert [(await company.task_result(ROOM, one.task_id)).task_conclusion for one in asking] == ["blue"] * 4


async def _asks(company: Company, task_id: TaskId) -> bool:
    state = await company.state(ROOM)
    return state is not None and any(one.task_id == task_id and one.question for one in state.open_tasks)
