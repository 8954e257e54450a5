"""Routes of questions of groups and tasks to the user of their goal."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from ioa.client.documents import OpenQuestion
from ioa.errors import ConflictError, InvalidInputError
from ioa.protocol.ids import CommIdField, GoalIdField, TaskIdField
from ioa.protocol.model import Instruction, Model
from ioa.protocol.operation.api_keys import Scope
from ioa_gateway.context import MAX_ITEMS, LaunchCall, ReadCall

_MAX_NUMBER = 999_999_999

router = APIRouter()


class QuestionsDocument(Model):
    """Open questions to the user of goals; `more` means that questions were left out."""

    more: bool
    questions: tuple[OpenQuestion, ...]


class AnswerOrder(Instruction):
    """An answer: to what a group asked in a turn, or to a question of a task."""

    turn: Annotated[int, Field(ge=0, le=_MAX_NUMBER, description="the turn in which a group asked")] | None = None
    task_id: Annotated[TaskIdField, Field(description="the task that asks")] | None = None
    number: Annotated[int, Field(ge=1, le=_MAX_NUMBER, description="the number of the task's question")] | None = None
    answer: Annotated[
        str, Field(min_length=1, max_length=2_000, description="one of the options, or any text if there are no options")
    ]

    @model_validator(mode="after")
    def _names_one_question(self) -> Self:
        if (self.turn is None) == (self.task_id is None) or (self.task_id is None) != (self.number is None):
            raise ValueError("name the `turn` of a group, or the `task_id` and the `number` of its question")
        return self


class AnsweredDocument(Model):
    """The question and its answer."""

    item: str
    answer: str


@router.get("/questions")
async def waiting(
    call: ReadCall, goal: Annotated[GoalIdField | None, Query(description="only questions of this goal of the key's user")] = None
) -> QuestionsDocument:
    """List the open questions to the caller."""
    found = await call.client.waiting(None if goal is None else await call.goal(None, goal))
    visible = {name: await call.shares_labels(name) for name in {one.goal for one in found}}
    questions = tuple(one for one in found if visible[one.goal])
    return QuestionsDocument(more=len(questions) > MAX_ITEMS, questions=questions[:MAX_ITEMS])


@router.post("/groups/{comm_id}/answer")
async def answer(call: LaunchCall, comm_id: CommIdField, order: AnswerOrder) -> AnsweredDocument:
    """Answer a question of a group or a task. The first answer counts; repeating it is idempotent."""
    await call.group(comm_id)
    item = f"{comm_id}.{order.turn}" if order.task_id is None else f"{comm_id}.{order.task_id}.{order.number}"
    try:
        await call.client.answer(item, order.answer)
    except (ConflictError, InvalidInputError) as error:
        if Scope.GOALS_READ in call.caller.scopes:
            raise
        what, hint = "The question is closed, or the answer is not valid.", "A key with goals:read gets the reason."
        raise type(error)(what, hint=hint) from None
    return AnsweredDocument(item=item, answer=order.answer)
