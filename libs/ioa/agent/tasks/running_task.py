"""A running task whose function reaches discovery, the model, and the agent that assigned the task."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ioa.agent.groups.membership import Membership
from ioa.agent.task_context import TaskContext, UpstreamResult
from ioa.agent.tasks.chat_question import ChatAnswer, ChatQuestion, left_of
from ioa.agent.tasks.inquiry import Inquiry
from ioa.agent.tasks.worker_pool import wait_aside
from ioa.agent.team_formation import find_agents, search_for_others
from ioa.agent.turn_view import TurnView
from ioa.agent.view_text import GivenOut
from ioa.errors import InvalidInputError
from ioa.group.rejection import RejectionCode
from ioa.group.requests import Rejected
from ioa.group.state import OpenTask
from ioa.ports.chat_model import current_user
from ioa.protocol.agents.search import Need, SearchResult
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.ids import TaskId

T = TypeVar("T")


class RunningTask(TaskContext):
    """The context of an attempt at a task, or of a task function that speaks in a turn.

    Args:
        member: The agent in the task's group.
        view: The group when the task begins.
        run: The task's id, and the number of the attempt.
        workspace: The folder of the attempt.
        given: How the task was assigned.
        results: The results that the task uses.
    """

    def __init__(
        self,
        member: Membership,
        view: TurnView,
        run: tuple[TaskId, int],
        workspace: Path,
        given: GivenOut,
        results: Sequence[UpstreamResult] = (),
    ) -> None:
        task_id, attempt = run
        super().__init__(
            task_id=task_id,
            task_key=member.files.task_key(task_id),
            attempt=attempt,
            goal=view.goal,
            goal_id=view.goal_id,
            comm_id=view.comm_id,
            workspace=workspace,
            asked_by=given.asked_by,
            meter=view.meter,
            reason=given.reason,
            rejected=given.rejected,
            conversation=view.conversation,
            team=view.team,
            inputs=member.files.fetched(view.charter.inputs),
            results=results,
            at=view.at,
        )
        self._member = member
        self._loop, self._user = asyncio.get_running_loop(), current_user.get()
        self._asking = asyncio.Lock()

    def tell(self, kind: str, /, **data: Any) -> None:
        """Report an event of this task to the author's `on_event` function."""
        with suppress(RuntimeError):  # the loop is closed: the function was abandoned
            self._loop.call_soon_threadsafe(partial(self._member.report, kind, task_id=self.task_id, **data))

    def _begin(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(request, self._loop)

    def _search(self, needs: Sequence[str | Need]) -> Coroutine[Any, Any, SearchResult]:
        request = search_for_others(needs, me=self._member.me, purpose=self.task_id)
        return find_agents(self._member.ports.network, request)

    async def _chat(self, question: ChatQuestion) -> ChatAnswer:
        current_user.set(self._user)  # a thread of the author does not inherit it
        member, chat = self._member, self._member.ports.chat
        if chat is None:
            raise no_model(member.me)

        def show(draft: str) -> None:
            self.draft = draft

        try:
            return await chat.ask(question, self.meter, lambda: left_of(member.state, self.task_id, self.meter.total), show)
        finally:
            self.draft = ""

    async def _ask(self, inquiry: Inquiry) -> str:
        """Return the answer; the earlier one if this task asked the same before a restart."""
        return await wait_aside(partial(self._answer, inquiry))

    async def _answer(self, inquiry: Inquiry) -> str:
        history = self._member.history
        async with self._asking:
            while (number := self._number(inquiry)) is None:
                await self._send(inquiry)
            while (answer := history.answers.get((self.task_id, number))) is None:
                task = history.state.task(self.task_id)
                if not isinstance(task, OpenTask) or task.question is None or task.question.number != number:
                    return inquiry.default
                await history.news.wait()
            return answer

    def _number(self, inquiry: Inquiry) -> int | None:
        asked = self._member.history.questions.get(self.task_id, [])
        return next((one.number for one in asked if inquiry.matches(one)), None)

    async def _send(self, inquiry: Inquiry) -> None:
        """Send the question, and wait for an entry: the question, or an earlier one with its number."""
        member, task = self._member, self._member.state.task(self.task_id)
        if not isinstance(task, OpenTask):
            raise InvalidInputError(f"{self.task_id} is no open task, so it can ask no question.")
        latest = task.deadline or member.state.limits.deadline
        question = inquiry.question(task.task_id, task.asked + 1, member.ports.clock.now(), latest)
        news = member.history.news
        answer = await member.say(question, task.turn, DecidedBy(kind="function"))
        if isinstance(answer, Rejected) and answer.code is not RejectionCode.STALE_PROGRESS:
            raise InvalidInputError(answer.message)
        await news.wait()


def no_model(agent_id: str) -> InvalidInputError:
    """Return the error of an agent without a language model."""
    return InvalidInputError(
        f"Agent {agent_id!r} needs a language model, and has none.", hint="Set IOA_LLM_MODEL, or give the agent a model of its own."
    )
