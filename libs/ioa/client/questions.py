"""Open questions to the user of a goal, from groups and their tasks, and the answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.documents import OpenQuestion, open_questions
from ioa.client.waiting import open_groups
from ioa.errors import ConflictError, ForbiddenError, InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import QuestionAnswered
from ioa.group.requests import AnswerQuestion
from ioa.ports.group_log import StoredEntry
from ioa.protocol.codec import validate
from ioa.protocol.ids import ADMIN, CommId, TaskId, UserId, is_token

_NUMBER = re.compile(r"[0-9]{1,9}")


def question_in_words(asked: OpenQuestion) -> str:
    """Describe a question for a reader without a form."""
    asker = f"Task {asked.task_id} of {asked.asker}" if asked.task_id else asked.asker
    lines = [f"{asker} asks{f' the {asked.role}' if asked.role else ''}: {continued(asked.text)}"]
    lines += [f"Answer one of {', '.join(map(shown_in_line, asked.options))}."] if asked.options else []
    return "\n".join((*lines, f"Until {asked.until:%Y-%m-%d %H:%M} UTC, then {shown_in_line(asked.default)}."))


async def questions_waiting(system: NatsSystemClient) -> AsyncIterator[OpenQuestion]:
    """Yield the open questions to the caller as the user of goals; for an admin the questions of all users."""
    async for group in open_groups(system, await _owner(system)):
        for question in open_questions(group.state):
            yield question


async def answer_question(system: NatsSystemClient, item: str, text: str, key: str = "") -> None:
    """Answer a question. The first answer counts; the same answer again changes nothing.

    Args:
        system: Access to the group.
        item: Item of the question.
        text: The answer.
        key: Id of the answer in the log.

    Raises:
        InvalidInputError: The item is not valid, or the answer is none of the options.
        NotFoundError: There is no such group.
        ForbiddenError: The goal belongs to another user.
        ConflictError: The question has another answer, which the message contains, or is closed.
    """
    comm_id, number, task_id = parse_item(item)
    state = (await system.group(comm_id)).state
    asked = {"turn": number} if task_id is None else {"task_id": task_id, "number": number}
    try:
        request = validate(AnswerQuestion, {"comm_id": comm_id, **asked, "answer": text, "key": key})
        await system.send_answer(request, state.user)
    except ConflictError as error:
        counted = next(_answers_to(await system.group_entries(comm_id), number, task_id), None)
        if counted is None:
            raise
        if counted.answer != text:
            message = f"It is too late to answer {item}: {counted.by} has answered {counted.answer!r}."
            raise ConflictError(message) from error


def parse_item(item: str) -> tuple[CommId, int, TaskId | None]:
    """Parse an item: the group, the turn or the number of the question, and the task if a task asks.

    Raises:
        InvalidInputError: It is no item.
    """
    comm_id, *task, number = item.split(".") if item.count(".") in (1, 2) else (item, "")
    if not is_token(comm_id) or not _NUMBER.fullmatch(number) or not all(map(is_token, task)):
        raise InvalidInputError(
            f"{item!r} is nothing that `ioa waiting` shows.", hint="An item is GROUP.TURN, or GROUP.TASK.NUMBER."
        )
    return CommId(comm_id), int(number), TaskId(task[0]) if task else None


async def _owner(system: NatsSystemClient) -> UserId | None:
    """Return the user whose questions are listed; None: all users."""
    try:
        user = await system.user()
    except ForbiddenError:
        return None
    return None if user == ADMIN else user


def _answers_to(entries: Sequence[StoredEntry], number: int, task_id: TaskId | None) -> Iterator[QuestionAnswered]:
    """Yield the answers of users to a question."""
    for event in (one.entry.event for one in entries):
        if isinstance(event, QuestionAnswered) and event.task_id == task_id and number == (event.turn or event.number):
            yield event
