"""Questions of a running task to the agent that assigned it, or to the goal's user; each is asked once, also after a restart."""

from __future__ import annotations

import asyncio

from ioa.agent.group_history import GroupHistory
from ioa.agent.inquiry import Inquiry
from ioa.agent.send import MessageSender
from ioa.agent.under_way import UnderWay
from ioa.errors import InvalidInputError
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Rejected
from ioa.group.state import OpenTask
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import TaskId

ASK = "ctx.ask(…)"

Inquiring = UnderWay[str]
"""A question that waits for its answer."""


class TaskQuestions:
    """The questions of one running task, one at a time.

    Args:
        sender: Sends the questions.
        history: The task's group.
        task_id: The task.
    """

    def __init__(self, sender: MessageSender, history: GroupHistory, task_id: TaskId) -> None:
        self._sender = sender
        self._history = history
        self._task_id = task_id
        self._asking = asyncio.Lock()

    async def ask(self, inquiry: Inquiry) -> str:
        """Return the answer; the earlier one if this task asked the same before a restart.

        Raises:
            InvalidInputError: The question is not valid.
        """
        async with self._asking:
            while (number := self._number(inquiry)) is None:
                await self._send(inquiry)
            while (answer := self._history.answers.get((self._task_id, number))) is None:
                await self._history.news()
            return answer

    def _number(self, inquiry: Inquiry) -> int | None:
        asked = self._history.questions.get(self._task_id, [])
        return next((one.number for one in asked if inquiry.matches(one)), None)

    async def _send(self, inquiry: Inquiry) -> None:
        """Send the question, and wait for an entry: the question, or an earlier one with its number."""
        history, state = self._history, self._history.state
        assert state is not None
        task = state.task(self._task_id)
        if not isinstance(task, OpenTask):
            raise InvalidInputError(f"The task {self._task_id} has ended; it can ask no question.")
        question = inquiry.question(task.task_id, task.asked + 1, self._sender.clock.now(), task.deadline or state.limits.deadline)
        news = history.news()
        answer = await self._sender.say(history, question, task.turn, DecidedBy(kind="function"))
        if isinstance(answer, Rejected) and answer.code is not RejectionCode.STALE_PROGRESS:
            raise InvalidInputError(answer.message)
        await news
