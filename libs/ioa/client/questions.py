"""What waits for the user of a goal: questions of its groups and of their tasks, and the answers to them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Literal

from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.client.documents import Instant
from ioa.errors import ConflictError, ForbiddenError, InvalidInputError
from ioa.foreign_text import continued, shown_in_line
from ioa.group.events import Event, QuestionAnswered, Said
from ioa.group.requests import AnswerQuestion
from ioa.group.state import Awaiting, GroupState
from ioa.protocol.codec import validate
from ioa.protocol.ids import ADMIN, LOCAL, AgentId, CommId, GoalId, GoalName, TaskId, UserId, is_token
from ioa.protocol.messages import AskUser, Decision, TaskQuestion
from ioa.protocol.model import Model
from ioa.protocol.questions import Question

_PAGE_ENTRIES = 32
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


def questions_of(state: GroupState) -> tuple[OpenQuestion, ...]:
    """Return the questions of a group to the user of its goal."""
    stage = state.stage
    found: list[OpenQuestion] = []

    def add(number: str, question: Question, **asked: object) -> None:
        item = f"{state.comm_id}.{number}"
        found.append(OpenQuestion.model_validate({**dict(state), **dict(question), **asked, "item": item}))

    if isinstance(stage, Awaiting) and stage.of == "user":
        add(f"{state.turn}", stage, task_id=None, role=None)
    for task in state.open_tasks:
        for question in task.questions:
            add(f"{task.task_id}.{question.number}", question, asker=task.assignee, task_id=task.task_id)
    return tuple(found)


def question_in_words(asked: OpenQuestion) -> str:
    """Say what is asked, for who reads no form."""
    who = f"Task {asked.task_id} of {asked.asker}" if asked.task_id else asked.asker
    lines = [f"{who} asks{f' the {asked.role}' if asked.role else ''}: {continued(asked.text)}"]
    lines += [f"Answer one of {', '.join(map(shown_in_line, asked.options))}."] if asked.options else []
    return "\n".join((*lines, f"Until {asked.until:%Y-%m-%d %H:%M} UTC, then {shown_in_line(asked.default)}."))


async def questions_waiting(system: NatsSystemClient) -> AsyncIterator[OpenQuestion]:
    """Yield what waits for the user that asks, in groups that are open; for an admin that of all users."""
    owner = await _owner(system)
    before, complete = None, False
    while not complete:
        page = await system.groups(before=before, open_only=True, owner=owner)
        for group in page.groups:
            for question in questions_of(group.state):
                yield question
        before, complete = page.before, page.before is None


async def is_question(system: NatsSystemClient, item: str) -> bool:
    """Whether an item is, or was, a question, and not a turn of a person.

    Raises:
        InvalidInputError: It is neither.
        NotFoundError: There is no such group.
    """
    comm_id, turn, task_id = parse_item(item)
    if task_id is not None:
        return True
    state = (await system.group(comm_id)).state
    if not any(member.human for member in state.members):
        return True
    if state.turn == turn:
        return isinstance(state.stage, Awaiting)
    said = [one.entry.event.message for one in await system.group_entries(comm_id) if isinstance(one.entry.event, Said)]
    return any(isinstance(message.payload, AskUser) and message.header.turn == turn for message in said)


async def answer_question(system: NatsSystemClient, item: str, text: str, key: str = "") -> None:
    """Answer a question, once: the first answer counts, and the same answer again is that one.

    Args:
        system: Where it is asked.
        item: What is answered.
        text: The answer.
        key: Names it in the log, for who looks later whether it was taken.

    Raises:
        InvalidInputError: The item is none, or the answer none of the options.
        NotFoundError: There is no such group.
        ForbiddenError: The goal is somebody else's.
        ConflictError: It is too late; the message says what counted.
    """
    comm_id, turn, task_id = parse_item(item)
    state = (await system.group(comm_id)).state
    asked = {"turn": turn} if task_id is None else {"task_id": task_id, "number": turn}
    try:
        request = validate(AnswerQuestion, {"comm_id": comm_id, **asked, "answer": text, "key": key})
        await system.send_answer(request, GoalName(state.user, state.goal_id).owner)
    except ConflictError as error:
        counted = await _counted(system, comm_id, turn, task_id)
        if counted is None:
            raise
        answer, by = counted
        if by is None or answer != text:
            what = f"{by} has answered {answer!r}" if by else f"nobody answered in time, and {answer!r} stands"
            raise ConflictError(f"It is too late to answer {item}: {what}.") from error


def parse_item(item: str) -> tuple[CommId, int, TaskId | None]:
    """Read what an item names: a group, the turn or the number of the question, and the task if one asks.

    Raises:
        InvalidInputError: It is none.
    """
    comm_id, *task, number = item.split(".") if item.count(".") in (1, 2) else (item, "")
    if not is_token(comm_id) or not _NUMBER.fullmatch(number) or not all(map(is_token, task)):
        raise InvalidInputError(
            f"{item!r} is nothing that `ioa waiting` shows.", hint="An item is GROUP.TURN, or GROUP.TASK.NUMBER."
        )
    return CommId(comm_id), int(number), TaskId(task[0]) if task else None


async def _owner(system: NatsSystemClient) -> UserId | None:
    """Return whose questions are meant; None: everybody's."""
    try:
        user = await system.user()
    except ForbiddenError:
        return None
    return None if user == ADMIN else user


async def _counted(system: NatsSystemClient, comm_id: CommId, number: int, task_id: TaskId | None) -> tuple[str, str | None] | None:
    """Return the answer that counted and who gave it, None for a default; nothing if this was never asked, or waits."""
    before = (await system.group(comm_id)).seq + 1
    while entries := await system.group_entries(comm_id, before=before, limit=_PAGE_ENTRIES):
        for stored in reversed(entries):
            event = stored.entry.event
            if (answer := _answer_in(event, number, task_id)) is not None:
                return answer
            if isinstance(event, Said):
                said, turn = event.message.payload, event.message.header.turn
                if task_id is None and isinstance(said, AskUser) and turn == number:
                    return said.default, None
                if isinstance(said, TaskQuestion) and (said.task_id, said.number) == (task_id, number):
                    return said.default, None
        before = entries[0].seq
    return None


def _answer_in(event: Event, number: int, task_id: TaskId | None) -> tuple[str, str] | None:
    match event:
        case QuestionAnswered() if event.task_id == task_id and number == (event.turn if task_id is None else event.number):
            return event.answer, event.by
        case Said(message=message):
            said = message.payload
            if isinstance(said, Decision) and task_id is not None and said.task_id == task_id and said.number in (0, number):
                return said.choice or said.content, message.header.sender
    return None
