"""A task context without a system behind it, for testing an agent's function by calling it."""

from __future__ import annotations

import asyncio
import json
import mimetypes
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ioa.agent.chatting import CHAT, ChatAnswer, ChatQuestion, Chatting, Left, question
from ioa.agent.conversation import Heard, Teammate
from ioa.agent.definition import AgentDefinition, InputFile, UpstreamResult, report, spent, trace_line
from ioa.agent.inquiring import ASK, WITHIN, Inquiring, Inquiry
from ioa.agent.listening import TaskEvent
from ioa.agent.searching import SEARCH, Searching, search_for_others
from ioa.agent.task_runner import no_model
from ioa.agent.workspace import checked_artifact
from ioa.errors import InvalidInputError
from ioa.ports.chat_model import ChatMessage, ChatModel, Tool
from ioa.ports.meter import Meter
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.search import Hit, Need, Search, SearchResult
from ioa.protocol.usage import NOTHING, Usage


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
    return SearchResult(by_need=(), merged=hits)


NOBODY_FOUND = SearchResult(by_need=(), merged=())


@dataclass
class RecordingContext:
    """Record what an agent reports and attaches. False in that nothing is sent, and nobody cancels unless `cancelled` is set.

    Attributes:
        workspace: An empty folder; artifacts are written into it.
        goal: The goal of the group.
        inputs: The files that came with the goal; `input_file` describes one.
        results: The results of earlier tasks; `upstream` describes one.
        task_id: The task's id.
        task_key: What tells the task from all others.
        attempt: 1, or more as after a restart.
        cancelled: Set to True to cancel the task of a plain function.
        reports: What was reported by `progress`, in order.
        artifacts: The files that were attached, one of each name.
        usage: What was spent, added up.
        found: What every search is answered with; `found` describes agents.
        searches: What was searched for, in order.
        model: Answers what is asked by `chat`, such as a `ScriptedModel`.
        left: What the goal's budget has left for `chat`.
        events: What was noted by `trace`, in order.
        told: Of what the agent's listeners were told, in order.
        conversation: What was said in the group.
        team: The other members of the group.
        asked_by: Who gave the task.
        reason: What was said with it.
        rejected: Why what was done before was not taken.
        answers: What each question is answered, by its text; of one that is not here the default stands.
        inquiries: What was asked by `ask`, in order.
    """

    workspace: Path
    goal: str = ""
    inputs: Sequence[InputFile] = ()
    results: Sequence[UpstreamResult] = ()
    task_id: TaskId = TaskId("task-1")
    attempt: int = 1
    cancelled: bool = False
    reports: list[tuple[str, float | None]] = field(default_factory=list)
    artifacts: list[InputFile] = field(default_factory=list)
    usage: Usage = NOTHING
    found: SearchResult = NOBODY_FOUND
    searches: list[Search] = field(default_factory=list)
    model: ChatModel | None = None
    left: Left = field(default_factory=Left)
    events: list[dict[str, Any]] = field(default_factory=list)
    told: list[TaskEvent] = field(default_factory=list)
    conversation: Sequence[Heard] = ()
    team: Sequence[Teammate] = ()
    asked_by: AgentId = AgentId("leader")
    reason: str = ""
    rejected: str = ""
    goal_id: GoalId = GoalId("goal-1")
    comm_id: CommId = CommId("group-1")
    answers: Mapping[str, str] = field(default_factory=dict)
    inquiries: list[Inquiry] = field(default_factory=list)
    task_key: str = "key-1"

    def progress(self, content: str, fraction: float | None = None) -> None:
        """Record the report.

        Raises:
            InvalidInputError: The fraction does not lie between 0 and 1.
        """
        self.reports.append(report(content, fraction))

    def search(self, *needs: str | Need, budget: int | None = None) -> Searching:
        """Record the search and answer with `found`.

        Raises:
            InvalidInputError: A need is not valid.
        """
        self.searches.append(search_for_others(needs, me=AgentId("agent-under-test"), purpose=self.task_id, budget=budget))
        answer: Future[SearchResult] = Future()
        answer.set_result(self.found)
        return Searching(answer, SEARCH)

    def ask(
        self,
        text: str,
        *,
        default: str,
        options: Sequence[str] = (),
        within: timedelta = WITHIN,
        role: str | None = None,
    ) -> Inquiring:
        """Record the question and answer it at once.

        Raises:
            InvalidInputError: It cannot be asked, or its answer is none of the options.
        """
        inquiry = Inquiry(text, default, tuple(options), role, within)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        asked = inquiry.question(self.task_id, 1, now, now + timedelta(days=365))
        self.inquiries.append(inquiry)
        reply = self.answers.get(text, default)
        if not asked.takes(reply):
            raise InvalidInputError(f"{reply!r} is none of the options: {', '.join(options)}.")
        answer: Future[str] = Future()
        answer.set_result(reply)
        return Inquiring(answer, ASK)

    def spend(self, *, tokens: int = 0, answer_tokens: int = 0, cost: float = 0.0) -> None:
        """Add up what was spent.

        Raises:
            InvalidInputError: A number is negative, or none.
        """
        self.usage = self.usage.plus(spent(tokens, answer_tokens, cost))

    def chat(
        self,
        messages: str | Sequence[ChatMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        max_tokens: int | None = None,
        may_call: bool = True,
        stream: bool = False,
    ) -> Chatting:
        """Ask the test's model, as a running task asks its agent's.

        Raises:
            InvalidInputError: The test has given no model.
        """
        asked = self._ask(question(messages, tools, schema, max_tokens, may_call=may_call, stream=stream))
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a plain function in a plain test
            answer: Future[ChatAnswer] = Future()
            try:
                answer.set_result(asyncio.run(asked))
            except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
                answer.set_exception(error)
            return Chatting(answer, CHAT)
        return Chatting.start(asked, loop, CHAT)

    async def _ask(self, asked: ChatQuestion) -> ChatAnswer:
        from ioa.agent.model import Budget
        from ioa.agent.model.chat import ModelChat

        if self.model is None:
            raise no_model("agent-under-test")
        meter = Meter()
        try:
            return await ModelChat(self.model, Budget()).ask(asked, meter, lambda: self.left)
        finally:
            self.usage = self.usage.plus(meter.total)

    def tell(self, kind: type[TaskEvent], /, **what: Any) -> None:
        """Record the event."""
        self.told.append(kind(AgentId("agent-under-test"), self.goal_id, self.comm_id, self.task_id, **what))

    def trace(self, event: Mapping[str, Any]) -> None:
        """Record the event.

        Raises:
            InvalidInputError: It is no JSON object.
        """
        self.events.append(json.loads(trace_line(event)))

    def artifact(self, name: str, data: bytes | str, media_type: str | None = None) -> Path:
        """Write the file into the workspace and record it; the same name again replaces it.

        Raises:
            InvalidInputError: A running task could not attach it.
        """
        content, kind = checked_artifact(name, data, media_type, {made.name: made.path.stat().st_size for made in self.artifacts})
        path = self.workspace / name
        path.write_bytes(content)
        self.artifacts = [kept for kept in self.artifacts if kept.name != name]
        self.artifacts.append(InputFile(name=name, path=path, media_type=kind))
        return path
