"""Routes of questions of groups and tasks to the user of their goal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from ioa.client.questions import OpenQuestion, questions_waiting
from ioa.errors import ConflictError, InvalidInputError, NotFoundError
from ioa.protocol.api_keys import Scope
from ioa.protocol.ids import CommIdField, GoalIdField, GoalName, TaskIdField
from ioa.protocol.labels import bears
from ioa.protocol.model import Instruction, Model
from ioa_gateway.context import MAX_ITEMS, ApiCall, LaunchCall, ReadCall
from ioa_gateway.request_body import JsonRoute

_MAX_NUMBER = 999_999_999

router = APIRouter(route_class=JsonRoute)


class QuestionsQuery(Instruction):
    """Of which goal."""

    goal: Annotated[GoalIdField, Field(description="of this goal of one's own alone")] | None = None


class QuestionsDocument(Model):
    """What waits for the user of goals, and whether more does than fits."""

    more: bool
    questions: tuple[OpenQuestion, ...]


class AnswerOrder(Instruction):
    """An answer: to what a group asked in a turn, or to a question of a task."""

    turn: Annotated[int, Field(ge=0, le=_MAX_NUMBER, description="in which a group asked")] | None = None
    task_id: Annotated[TaskIdField, Field(description="the task that asks")] | None = None
    number: Annotated[int, Field(ge=1, le=_MAX_NUMBER, description="which of its questions")] | None = None
    answer: Annotated[
        str, Field(min_length=1, max_length=2_000, description="one of the options, or any text where there are none")
    ]

    @model_validator(mode="after")
    def _is_to_one(self) -> Self:
        if (self.turn is None) == (self.task_id is None) or (self.task_id is None) != (self.number is None):
            raise ValueError("name the `turn` of a group, or the `task_id` and the `number` of its question")
        return self


class AnsweredDocument(Model):
    """What was answered."""

    item: str
    answer: str


@router.get("/questions")
async def waiting(call: ReadCall, query: Annotated[QuestionsQuery, Query()]) -> QuestionsDocument:
    """List the open questions to the caller."""
    goal = None if query.goal is None else await call.goal(None, query.goal)
    async with call.page_read():
        questions, seen = list[OpenQuestion](), dict[GoalName, bool]()
        async for one in _asked(call, goal):
            if one.goal not in seen:
                seen[one.goal] = await _is_seen(call, one.goal)
            if seen[one.goal]:
                questions.append(one)
    more = len(questions) > MAX_ITEMS
    return QuestionsDocument(more=more, questions=tuple(questions[:MAX_ITEMS]))


@router.post("/groups/{comm_id}/answer")
async def answer(call: LaunchCall, comm_id: CommIdField, order: AnswerOrder) -> AnsweredDocument:
    """Answer a question of a group or a task. The first answer counts; repeating it is idempotent."""
    await call.check_group(comm_id)
    item = f"{comm_id}.{order.turn}" if order.task_id is None else f"{comm_id}.{order.task_id}.{order.number}"
    try:
        async with call.page_read():  # reads the log
            await call.client.answer(item, order.answer)
    except (ConflictError, InvalidInputError) as error:
        if Scope.GOALS_READ in call.caller.scopes:
            raise
        # The error contains the answer and the options, which the key may not read.
        raise type(error)("This is asked no more, or not answered so.", hint="A key for goals:read is told more.") from None
    return AnsweredDocument(item=item, answer=order.answer)


async def _asked(call: ApiCall, goal: GoalName | None) -> AsyncIterator[OpenQuestion]:
    if goal is None:
        async for one in questions_waiting(call.client):
            yield one
    else:
        for one in await call.client.waiting(goal):
            yield one


async def _is_seen(call: ApiCall, goal: GoalName) -> bool:
    """Whether a goal has the labels of the caller."""
    if not call.caller.labels:
        return True
    try:
        return bears((await call.client.goal(goal, with_team=False)).record.goal.labels, call.caller.labels)
    except NotFoundError:
        return False
