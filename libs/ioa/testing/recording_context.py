"""A task context without a running system, to test an agent's function by a call."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from ioa.agent.definition import AgentDefinition
from ioa.agent.task_context import InputFile, TaskContext, UpstreamResult
from ioa.agent.tasks.chat_question import ChatAnswer, ChatQuestion, Left
from ioa.agent.tasks.inquiry import Inquiry
from ioa.agent.tasks.running_task import no_model
from ioa.agent.team_formation import search_for_others
from ioa.errors import InvalidInputError
from ioa.ports.chat_model import ChatModel
from ioa.ports.meter import Meter
from ioa.protocol.agents.search import Hit, Need, NeedHits, Search, SearchResult
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.usage import Usage

_ME = AgentId("agent-under-test")

T = TypeVar("T")


def input_file(path: Path) -> InputFile:
    """Describe a file on disk as a task's input; the media type is guessed from its name."""
    return InputFile(name=path.name, path=path, media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream")


def upstream(
    task: str, content: str, *files: Path, agent_id: str = "earlier-agent", task_id: str = "t0", rejected: str = ""
) -> UpstreamResult:
    """Describe what an earlier task of the group came to."""
    artifacts = tuple(input_file(path) for path in files)
    return UpstreamResult(TaskId(task_id), AgentId(agent_id), task, content, artifacts, rejected)


def found(*agents: AgentDefinition) -> SearchResult:
    """Describe what a search finds: these agents, the best first."""
    cards = [agent.card_as(AgentId(agent.agent_id)) for agent in agents]
    hits = tuple(Hit(card=card, score=1 / rank, similarity=1 / rank) for rank, card in enumerate(cards, 1))
    return SearchResult(by_need=(NeedHits(need=Need(text="any"), hits=hits),))


NOBODY_FOUND = SearchResult()


class RecordingContext(TaskContext):
    """A task context that records the actions of an agent's function. Nothing is sent.

    Args:
        workspace: An empty folder.
        goal: The goal of the group.
        inputs: The files of the goal; `input_file` describes one.
        results: The results of earlier tasks; `upstream` describes one.
        found: The result of every search; `found` describes agents.
        model: The model that answers `chat`, such as a `ScriptedModel`.
        left: The rest of the goal's budget.
        answers: Answers to questions, by text; other questions get their default.
        task: Further attributes of `TaskContext`.

    Attributes:
        reports: Reports of `progress`, in order.
        searches: The searches, in order.
        reported: Events of `tell`: kind and data, in order.
        inquiries: Questions of `ask`, in order.
    """

    def __init__(
        self,
        workspace: Path,
        goal: str = "",
        inputs: Sequence[InputFile] = (),
        results: Sequence[UpstreamResult] = (),
        *,
        found: SearchResult = NOBODY_FOUND,
        model: ChatModel | None = None,
        left: Left | None = None,
        answers: Mapping[str, str] | None = None,
        **task: Any,
    ) -> None:
        defaults: dict[str, Any] = {
            "task_id": TaskId("task-1"),
            "task_key": "key-1",
            "attempt": 1,
            "goal_id": GoalId("goal-1"),
            "comm_id": CommId("group-1"),
            "asked_by": AgentId("leader"),
        }
        about = {**defaults, **task}
        super().__init__(workspace=workspace, goal=goal, inputs=inputs, results=results, meter=Meter(), **about)
        self.found, self.model, self.left, self.answers = found, model, left or Left(), answers or {}
        self.reports: list[tuple[str, float | None]] = []
        self.searches: list[Search] = []
        self.reported: list[tuple[str, Mapping[str, Any]]] = []
        self.inquiries: list[Inquiry] = []

    @property
    def usage(self) -> Usage:
        """The sum of all usages."""
        return self.meter.total

    @property
    def artifacts(self) -> list[InputFile]:
        """The attached files."""
        return list(self.made)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of the trace."""
        return [json.loads(line) for line in self.traced.splitlines()]

    def progress(self, content: str, fraction: float | None = None) -> None:
        """Record a report."""
        super().progress(content, fraction)
        if (latest := self.take_progress()) is not None:
            self.reports.append(latest)

    def _begin(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(request, asyncio.get_running_loop())
        except RuntimeError:  # a sync function in a sync test
            answer: Future[T] = Future()
            try:
                answer.set_result(asyncio.run(request))
            except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
                answer.set_exception(error)
            return answer

    async def _search(self, needs: Sequence[str | Need]) -> SearchResult:
        self.searches.append(search_for_others(needs, me=_ME, purpose=self.task_id))
        return self.found

    async def _ask(self, inquiry: Inquiry) -> str:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        asked = inquiry.question(self.task_id, 1, now, now + timedelta(days=365))
        self.inquiries.append(inquiry)
        reply = self.answers.get(inquiry.text, inquiry.default)
        if not asked.takes(reply):
            raise InvalidInputError(f"{reply!r} is none of the options: {', '.join(inquiry.options)}.")
        return reply

    def tell(self, kind: str, /, **data: Any) -> None:
        """Record an event."""
        self.reported.append((kind, {"task_id": self.task_id, **data}))

    async def _chat(self, question: ChatQuestion) -> ChatAnswer:
        from ioa.agent.model import Budget
        from ioa.agent.model.chat import ModelChat

        if self.model is None:
            raise no_model(_ME)
        return await ModelChat(self.model, Budget()).ask(question, self.meter, lambda: self.left)
