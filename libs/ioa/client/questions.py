"""Open questions to the user of a goal, from groups and their tasks, and the answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Literal

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.documents import Instant
from ioa.client.waiting import open_groups
from ioa.errors import ConflictError, ForbiddenError, InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Event, QuestionAnswered, Said
from ioa.group.requests import AnswerQuestion
from ioa.group.state import GroupState, Waiting
from ioa.protocol.codec import validate
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, CommId, GoalId, GoalName, TaskId, UserId, is_token
from ioa.protocol.messages import AskUser, Decision, Question, TaskQuestion
from ioa.protocol.model import Model

_NUMBER = re.compile(r"[0-9]{1,9}")


class OpenQuestion(Model):
    """A question to the user of a goal, as Python, `--json` and HTTP return it.

    Attributes:
        item: Reference for the answer: `GROUP.TURN`, or `GROUP.TASK.NUMBER` for a question of a task.
        options: Possible answers; empty: any text of up to 2,000 characters.
        default: Answer that applies at `until`.
        task_id: Task that asks; None if the floor holder asks and the discussion waits.
        role: Role in which the user is asked, such as an operator; None if the task names none.
    """

    item: str
    kind: Literal["question"] = "question"
    goal_id: GoalId
    user: UserId | None
    comm_id: CommId
    asker: AgentId
    text: str
    options: tuple[str, ...]
    default: str
    until: Instant
    task_id: TaskId | None
    role: str | None

    @property
    def goal(self) -> GoalName:
        """Goal whose user is asked."""
        return GoalName(self.user or LOCAL, self.goal_id)


def open_questions(state: GroupState) -> tuple[OpenQuestion, ...]:
    """Return the questions of a group to the user of its goal."""
    found: list[OpenQuestion] = []

    def add(number: str, question: Question, **asked: object) -> None:
        item = f"{state.comm_id}.{number}"
        found.append(OpenQuestion.model_validate({**dict(state), **dict(question), **asked, "item": item}))

    if isinstance(state.stage, Waiting) and state.question is not None and state.parent is None:
        add(f"{state.turn}", state.question, asker=state.stage.waiter, task_id=None, role=None)
    for task in state.open_tasks:
        for question in task.questions:
            add(f"{task.task_id}.{question.number}", question, asker=task.assignee, task_id=task.task_id)
    return tuple(found)


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
        await system.send_answer(request, GoalName(state.user, state.goal_id).owner)
    except ConflictError as error:
        entries = await system.group_entries(comm_id)
        counted = next(filter(None, (_answer_in(one.entry.event, number, task_id) for one in reversed(entries))), None)
        if counted is None:
            raise
        answer, by = counted
        if by is None or answer != text:
            what = f"{by} has answered {answer!r}" if by else f"nobody answered in time, and {answer!r} stands"
            raise ConflictError(f"It is too late to answer {item}: {what}.") from error


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


def _answer_in(event: Event, number: int, task_id: TaskId | None) -> tuple[str, str | None] | None:
    """Return the answer in an event and its author; if the event asks the question, its default without an author."""
    match event:
        case QuestionAnswered() if event.task_id == task_id and number == (event.turn if task_id is None else event.number):
            return event.answer, event.by
        case Said(message=message):
            said = message.payload
            if isinstance(said, Decision) and task_id is not None and said.task_id == task_id and said.number in (0, number):
                return said.choice or said.content, message.header.sender
            if isinstance(said, AskUser) and task_id is None and message.header.turn == number:
                return said.default, None
            if isinstance(said, TaskQuestion) and (said.task_id, said.number) == (task_id, number):
                return said.default, None
    return None
