"""The context of a running task: its data, and the actions of the author's function. All members can be used from any thread."""

from __future__ import annotations

import asyncio
import json
import math
import mimetypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ioa.errors import InvalidInputError
from ioa.protocol.goals import plain_file_name
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.usage import MICROS, Usage

if TYPE_CHECKING:  # an author's file loads only what a card needs
    from pydantic import BaseModel

    from ioa.agent.conversation import Heard, Teammate
    from ioa.agent.tasks.chat_question import ChatAnswer, ChatQuestion
    from ioa.agent.tasks.inquiry import Inquiry
    from ioa.ports.chat_model import ChatMessage, Tool
    from ioa.ports.meter import Meter
    from ioa.protocol.agents.search import Need, SearchResult

MAX_ARTIFACT_BYTES = 64 * 1024 * 1024
MAX_TRACE_BYTES = 4_000_000

T = TypeVar("T")


@dataclass(frozen=True)
class InputFile:
    """A file that a task can read. `path` is a local copy."""

    name: str
    path: Path
    media_type: str

    @property
    def plain_name(self) -> str:
        """The name as every file system accepts it; `name` can be longer."""
        return plain_file_name(self.name)


@dataclass(frozen=True)
class UpstreamResult:
    """The result of an earlier task that this task uses.

    `rejected` is the reason why the group rejected it; empty if it did not. A rejected result has no files.
    """

    task_id: TaskId
    agent_id: AgentId
    task_desc: str
    content: str
    artifacts: tuple[InputFile, ...] = ()
    rejected: str = ""


@dataclass
class UnderWay(Generic[T]):
    """A pending answer: `await` it in an async function, call `result()` in a sync one.

    Args:
        future: The answer.
        call: The author's call, for errors.
    """

    future: Future[T]
    call: str

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self.future).__await__()

    def result(self) -> T:
        """Wait for the answer.

        Raises:
            InvalidInputError: The caller runs on an event loop, which waiting would block.
            concurrent.futures.CancelledError: The task was cancelled.
            IoaError: The request failed; see the call that started it.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.future.result()
        raise InvalidInputError("Waiting for an answer would block the event loop.", hint=f"Write: await ctx.{self.call}(…)")


@dataclass(eq=False)
class TaskContext(ABC):
    """A running task.

    Attributes:
        task_id: The task's id; unique in its group.
        task_key: 32 digits that identify the task in all groups, the same in every attempt: an idempotency key.
        attempt: 1 in the first run; more after restarts of the agent.
        goal: The goal of the task's group.
        goal_id: The goal's id.
        comm_id: The group's id; a nested group has its own.
        workspace: An empty folder of this attempt, which is deleted when the attempt ends.
        asked_by: The agent that assigned the task.
        reason: The reason of the assignment; often empty.
        rejected: The reason why an earlier result was rejected, if this task must improve it; empty otherwise.
        conversation: The messages, tasks and results of the group until the task began, in order.
        team: The other members of the group when the task began.
        inputs: The files of the goal.
        results: The results of earlier tasks that this task uses.
        at: The time of the assignment, by the group's log; None if unknown.
        meter: Counts the cost of the task.
    """

    task_id: TaskId
    task_key: str
    attempt: int
    goal: str
    goal_id: GoalId
    comm_id: CommId
    workspace: Path
    asked_by: AgentId
    meter: Meter = field(repr=False)
    reason: str = ""
    rejected: str = ""
    conversation: Sequence[Heard] = ()
    team: Sequence[Teammate] = ()
    inputs: Sequence[InputFile] = ()
    results: Sequence[UpstreamResult] = ()
    at: datetime | None = None

    def __post_init__(self) -> None:
        # Each of these is changed by one atomic operation of CPython; only attaching a file needs a lock.
        self._attaching = threading.Lock()
        self._cancelled = threading.Event()
        self._requests: set[Future[Any]] = set()
        self._progress: tuple[str, float | None] | None = None
        self._trace = bytearray()
        self._made: dict[str, InputFile] = {}
        self.draft = ""
        """The answer that the model is writing now, if it may be shown."""

    @property
    def files(self) -> Sequence[InputFile]:
        """The files of the goal, then the files of the results that the task uses."""
        return [*self.inputs, *(file for result in self.results for file in result.artifacts)]

    @property
    def cancelled(self) -> bool:
        """True if the task was cancelled. An async function is cancelled by itself; a sync function must check this."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Cancel the task and its requests."""
        self._cancelled.set()
        for request in tuple(self._requests):
            request.cancel()

    def progress(self, content: str, fraction: float | None = None) -> None:
        """Report progress to the group; the latest report of each second is sent. `fraction` is between 0 and 1.

        Raises:
            InvalidInputError: The fraction is not between 0 and 1.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise InvalidInputError(f"`fraction` must be between 0 and 1; got {fraction}.")
        self._progress = str(content), None if fraction is None else float(fraction)

    def take_progress(self) -> tuple[str, float | None] | None:
        """Return the latest report, once."""
        latest, self._progress = self._progress, None
        return latest

    def search(self, *needs: str | Need) -> UnderWay[SearchResult]:
        """Search for agents: `await ctx.search("…")` in an async function, `ctx.search("…").result()` in a sync one.

        Args:
            needs: Needs in words, or `Need`s with keywords, filters and `k`. A need in words does not find this agent.

        Raises:
            InvalidInputError: A need is not valid.
        """
        return self._start(self._search(needs), "search")

    def chat(
        self,
        messages: str | Sequence[ChatMessage],
        *,
        tools: Sequence[Tool] = (),
        schema: type[BaseModel] | None = None,
        max_tokens: int | None = None,
        may_call: bool = True,
        stream: bool = False,
    ) -> UnderWay[ChatAnswer]:
        """Ask the agent's language model: `await ctx.chat("…")` in an async function, `ctx.chat("…").result()` in a sync one.

        The cost is counted for the goal. Cancelling the task cancels the request.

        Args:
            messages: A text, or a conversation in which each tool call has an answer.
            tools: Tools that the model may request. None is run: the answer's `tool_calls` contains the requests.
            schema: Class of the answer, returned as `parsed`. An invalid answer goes back to the model, at most twice.
            max_tokens: Maximum tokens of the answer, and never more than the goal's budget has left.
            may_call: False: the model sees the tools and must answer without a call.
            stream: Show the growing answer to the goal's followers. It is a draft, in no log, and can be lost.

        Raises:
            InvalidInputError: The agent has no model, or a tool call has no answer.
            BudgetSpentError: The goal's budget is spent; the model was not asked.
            UnavailableError: The model cannot be reached, is overloaded or too slow, after all retries.
            ModelError: The server rejects the request, or no answer was valid.
        """
        from ioa.agent.tasks.chat_question import ChatQuestion
        from ioa.ports.chat_model import ChatMessage

        said = (ChatMessage("user", messages),) if isinstance(messages, str) else tuple(messages)
        asked = ChatQuestion(said, tuple(tools), schema, max_tokens, may_call, stream)
        return self._start(self._chat(asked), "chat")

    def ask(
        self,
        text: str,
        *,
        default: str,
        options: Sequence[str] = (),
        within: timedelta = timedelta(hours=1),
        role: str | None = None,
    ) -> UnderWay[str]:
        """Ask the agent that assigned the task, or the user: `await ctx.ask("…")`, or `ctx.ask("…").result()` in a sync function.

        The first answer counts. The discussion continues, and the task's lease is renewed. The same question again in one task,
        also after a restart, has the same answer.

        Args:
            text: The question, at most 2,000 characters.
            default: The answer if none arrives in time.
            options: At most 16 possible answers; none: any text.
            within: Timeout, at most nine tenths of the time that the task has left.
            role: The role that must answer, such as an operator; then no agent answers.

        Raises:
            InvalidInputError: The question is not valid.
        """
        from ioa.agent.tasks.inquiry import Inquiry

        return self._start(self._ask(Inquiry(text, default, tuple(options), role, within)), "ask")

    def spend(self, *, tokens: int = 0, answer_tokens: int = 0, cost: float = 0.0) -> None:
        """Count resources that the task has used since the last call, for the goal's budget.

        Args:
            tokens: Tokens that a language model read, or all of them if the two kinds are not known.
            answer_tokens: Tokens that it wrote.
            cost: Money, in the currency of the goal's `max_cost`.

        Raises:
            InvalidInputError: A number is negative.
        """
        try:
            usage = Usage(tokens_in=tokens, tokens_out=answer_tokens, cost_micros=math.ceil(cost * MICROS))
        except (ValueError, OverflowError, TypeError) as error:
            numbers = f"tokens={tokens!r}, answer_tokens={answer_tokens!r}, cost={cost!r}"
            raise InvalidInputError(f"tokens, answer_tokens and cost must be numbers of 0 or more; got {numbers}.") from error
        self.meter.add(usage)

    def artifact(self, name: str, data: bytes | str, media_type: str | None = None) -> Path:
        """Attach a file to the result, and return its path; the same name again replaces it.

        Args:
            name: A file name without folders.
            data: The content; text becomes UTF-8.
            media_type: None: guessed from the name.

        Raises:
            InvalidInputError: The name, the type or a size is not valid.
        """
        with self._attaching:
            check_names({*self._made, name})
            content = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
            kind = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
            if len(content) > MAX_ARTIFACT_BYTES:
                raise InvalidInputError(f"{name} has {len(content):,} bytes; {MAX_ARTIFACT_BYTES:,} are allowed.")
            path = self.workspace / "artifacts" / name
            path.parent.mkdir(exist_ok=True)  # fails if the task has ended and its workspace is deleted
            path.write_bytes(content)
            self._made[name] = InputFile(name, path, kind)
        return path

    @abstractmethod
    def tell(self, kind: str, /, **data: Any) -> None:
        """Report an event of this task to the author's `on_event` function: `ctx.tell("tool_called", tool="bash", …)`."""

    def trace(self, event: Mapping[str, Any]) -> None:
        """Add a JSON object to the trace, which is stored with the result and shown to no agent; at most 4 MB.

        Raises:
            InvalidInputError: It cannot be written as JSON.
        """
        try:
            line = json.dumps(dict(event), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"An event of a trace must be a JSON object: {error}.") from None
        if len(self._trace) + len(line) <= MAX_TRACE_BYTES:
            self._trace += line

    @property
    def traced(self) -> bytes:
        """The trace so far, as JSON lines."""
        return bytes(self._trace)

    @property
    def made(self) -> tuple[InputFile, ...]:
        """The attached files, in order."""
        return tuple(self._made.values())

    def _start(self, request: Coroutine[Any, Any, T], call: str) -> UnderWay[T]:
        """Start a request, which is cancelled when the task is cancelled, before or after."""
        future = self._begin(request)
        self._requests.add(future)
        future.add_done_callback(self._requests.discard)
        if self.cancelled:
            future.cancel()
        return UnderWay(future, call)

    @abstractmethod
    def _begin(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a request, from any thread."""

    @abstractmethod
    def _search(self, needs: Sequence[str | Need]) -> Coroutine[Any, Any, SearchResult]:
        """Return a search for needs."""

    @abstractmethod
    async def _chat(self, question: ChatQuestion) -> ChatAnswer:
        """Ask the agent's model."""

    @abstractmethod
    async def _ask(self, inquiry: Inquiry) -> str:
        """Ask the assigner or the user."""


def check_names(names: Collection[str]) -> None:
    """Check the names and the number of files that a task attaches.

    Raises:
        InvalidInputError: A name is no plain file name, or there are too many.
    """
    from ioa.protocol.messages import MAX_ARTIFACTS

    if len(names) > MAX_ARTIFACTS:
        raise InvalidInputError(f"A task may attach {MAX_ARTIFACTS} files.", hint="Pack them into one archive.")
    for name in names:
        if plain_file_name(name) != name:
            raise InvalidInputError(f"{name!r} is no plain file name.", hint="Use a short name without folders.")
