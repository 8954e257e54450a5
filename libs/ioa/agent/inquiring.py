"""Asking who gave out a task, or the goal's user, from within it: once, whatever is restarted meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from ioa.agent.history import GroupHistory
from ioa.agent.outbox import Outbox
from ioa.agent.under_way import UnderWay
from ioa.agent.worker_pool import Slot, current_slots
from ioa.errors import InvalidInputError
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Rejected
from ioa.group.state import OpenTask
from ioa.protocol.codec import validate
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AskUser, TaskQuestion

MOST_OF_THE_TIME = 0.9
"""How much of the time that is left a question may wait; the rest is for what its answer is needed for."""
WITHIN = timedelta(hours=1)

Q = TypeVar("Q", TaskQuestion, AskUser)


@dataclass(frozen=True)
class Inquiry:
    """What a task asks; see `TaskContext.ask`. The same inquiry again in one task is the same question, and has its answer."""

    text: str
    default: str
    options: tuple[str, ...] = ()
    role: str | None = None
    within: timedelta = WITHIN

    def is_asked_by(self, question: TaskQuestion) -> bool:
        """Whether a question is this one, however long it waits."""
        same = (question.text, question.default, question.options, question.role)
        return same == (self.text, self.default, self.options, self.role)

    def question(self, task_id: TaskId, number: int, at: datetime, latest: datetime) -> TaskQuestion:
        """Make a question of it that a task asks at a time, and that is over before `latest`.

        Raises:
            InvalidInputError: It cannot be asked; the message says why.
        """
        asked = {"role": self.role, "task_id": task_id, "number": number}
        return self._asked(TaskQuestion, asked, at, latest)

    def to_user(self, began: datetime | None, deadline: datetime) -> AskUser:
        """Make a question out of the group of it, by who has had the floor since then.

        Raises:
            InvalidInputError: It cannot be asked; the message says why.
        """
        return self._asked(AskUser, {}, began or deadline, deadline)

    def _asked(self, kind: type[Q], more: Mapping[str, object], at: datetime, latest: datetime) -> Q:
        until = at + min(self.within, (latest - at) * MOST_OF_THE_TIME)
        words = {"text": self.text, "default": self.default, "options": self.options}
        question = validate(kind, {**words, "until": until, **more})
        if fault := question.fault(at, latest):
            raise InvalidInputError(f"This cannot be asked: {fault}.")
        return question


@dataclass(frozen=True)
class AskedOfMe:
    """What a task asks that this agent has given out, or the nested team that serves it.

    Attributes:
        task_id: The task.
        asker: Who works on it.
        task: What is to be done.
        text: The question.
        options: What may be answered; empty: any text.
        default: What stands if nobody answers.
    """

    task_id: TaskId
    asker: AgentId
    task: str
    text: str
    options: tuple[str, ...]
    default: str


AnswerFunction = Callable[[AskedOfMe], str | Awaitable[str | None] | None]


ASK = "ctx.ask(…)"

Inquiring = UnderWay[str]
"""A question that waits for its answer."""


class InquiringAside(Inquiring):
    """One whose answer may take days: the function that waits for it leaves its slot to others meanwhile.

    Args:
        asked: Brings the answer.
        loop: Where it runs.
    """

    def __init__(self, asked: Coroutine[Any, Any, str], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(asyncio.run_coroutine_threadsafe(asked, loop), ASK)
        self._loop = loop

    def __await__(self) -> Generator[Any, None, str]:
        return self._waited(current_slots()).__await__()

    def _wait(self) -> str:
        return asyncio.run_coroutine_threadsafe(self._waited(current_slots()), self._loop).result()

    async def _waited(self, slots: Sequence[Slot]) -> str:
        answer = asyncio.wrap_future(self._future)
        async with AsyncExitStack() as stack:
            for slot in slots:
                await stack.enter_async_context(slot.aside())
            try:
                await asyncio.wait([answer])
            except asyncio.CancelledError:
                answer.cancel()
                raise
        return answer.result()


Inquire = Callable[[Inquiry], Inquiring]


class Inquirer:
    """The questions of one running task, one at a time.

    Args:
        outbox: The agent's way of speaking.
        history: The task's group.
        task_id: The task.
    """

    def __init__(self, outbox: Outbox, history: GroupHistory, task_id: TaskId) -> None:
        self._outbox = outbox
        self._history = history
        self._task_id = task_id
        self._asking = asyncio.Lock()

    async def ask(self, inquiry: Inquiry) -> str:
        """Return the answer; that of before, if this task has asked the same before it was begun again.

        Raises:
            InvalidInputError: It cannot be asked; the message says why.
        """
        async with self._asking:
            while (number := self._number_of(inquiry)) is None:
                await self._say(inquiry)
            while (answer := self._history.answers.get((self._task_id, number))) is None:
                await self._history.news()
            return answer

    def _number_of(self, inquiry: Inquiry) -> int | None:
        asked = self._history.questions.get(self._task_id, [])
        return next((one.number for one in asked if inquiry.is_asked_by(one)), None)

    async def _say(self, inquiry: Inquiry) -> None:
        """Ask, and wait until the group has heard something: that is the question, or what was asked under its number before."""
        history, state = self._history, self._history.state
        assert state is not None
        task = state.task(self._task_id)
        if not isinstance(task, OpenTask):
            raise InvalidInputError(f"The task {self._task_id} has ended, and asks nothing more.")
        question = inquiry.question(task.task_id, task.asked + 1, self._outbox.clock.now(), task.deadline or state.limits.deadline)
        news = history.news()
        answer = await self._outbox.say(history, question, task.turn, DecidedBy(kind="function"))
        if isinstance(answer, Rejected) and answer.code is not RejectionCode.STALE_PROGRESS:
            raise InvalidInputError(answer.message)
        await news
