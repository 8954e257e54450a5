"""What an agent's author says of it: a card, and one function that does its work; `ioa.hosting.agent` shows how.

The function may be sync (it runs in a thread) or async, and may take a second argument, the `TaskContext`.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, NoReturn, Protocol, Self, TypeVar, get_args, get_origin, get_type_hints, overload

from pydantic import ValidationError

from ioa.errors import DeclinedError, InvalidInputError
from ioa.protocol.cards import AgentCard, Skill
from ioa.protocol.goals import plain_file_name
from ioa.protocol.ids import AgentId, CommId, GoalId, PoolId, TaskId
from ioa.protocol.usage import MICROS, Usage
from ioa.protocol.validation_errors import in_words

if TYPE_CHECKING:  # an author's file loads no more than a card needs
    from pydantic import BaseModel

    from ioa.adapters.openai.settings import ModelSettings
    from ioa.agent.chatting import Chatting
    from ioa.agent.conversation import Heard, Teammate
    from ioa.agent.hooks import KeepFunction, ObserveFunction, SpeakFunction
    from ioa.agent.inquiring import AnswerFunction, Inquiring
    from ioa.agent.listening import Listener, TaskEvent
    from ioa.agent.searching import Searching
    from ioa.ports.brain import Brain
    from ioa.ports.chat_model import ChatMessage, ChatModel, Tool
    from ioa.protocol.search import Need

MAX_INSTRUCTIONS_CHARS = 8_000


@dataclass(frozen=True)
class InputFile:
    """A file the task may read. `path` is a local copy."""

    name: str
    path: Path
    media_type: str

    @property
    def plain_name(self) -> str:
        """Its name as any folder takes it, for who lays it into one: that of `name` may be longer than a file system allows."""
        return plain_file_name(self.name)


@dataclass(frozen=True)
class UpstreamResult:
    """What an earlier task of the group came to, which this task builds on.

    `rejected` is why the group did not take it, and empty if it did: then it is only told, to be done better, and has no files.
    """

    task_id: TaskId
    agent_id: AgentId
    task_desc: str
    content: str
    artifacts: tuple[InputFile, ...] = ()
    rejected: str = ""


class TaskContext(Protocol):
    """What a running task may know and do besides its description. Every member is safe to use from any thread."""

    @property
    def task_id(self) -> TaskId:
        """The task's id in its group: other groups have tasks of the same id."""

    @property
    def task_key(self) -> str:
        """What tells the task from those of all groups, users and tenants: 32 digits, the same on every attempt.

        So it can serve as an idempotency key, and as the name of a conversation that is kept somewhere.
        """

    @property
    def attempt(self) -> int:
        """1 on the first run; more when the agent was restarted in the middle of the task."""

    @property
    def goal(self) -> str:
        """The goal of the group this task belongs to."""

    @property
    def goal_id(self) -> GoalId:
        """The goal's id: what belongs to one goal goes by it, such as an environment that its tasks share."""

    @property
    def comm_id(self) -> CommId:
        """The group's id; a nested team is a group of its own."""

    @property
    def asked_by(self) -> AgentId:
        """Who gave this agent the task, perhaps itself."""

    @property
    def reason(self) -> str:
        """What was said with the task, such as why it is given; often empty."""

    @property
    def rejected(self) -> str:
        """Why the group did not take what was done before, if this task is to do it better; empty if nothing was rejected."""

    @property
    def conversation(self) -> Sequence[Heard]:
        """What was said in the group until the task began, in order, with the tasks and their results."""

    @property
    def team(self) -> Sequence[Teammate]:
        """The other members of the group, as they were when the task began."""

    @property
    def inputs(self) -> Sequence[InputFile]:
        """The files that came with the goal."""

    @property
    def results(self) -> Sequence[UpstreamResult]:
        """The results of earlier tasks that this task uses."""

    @property
    def workspace(self) -> Path:
        """An empty folder that belongs to this attempt alone, and goes when it has ended."""

    @property
    def cancelled(self) -> bool:
        """Whether the task was cancelled. An async function is cancelled by itself; a sync one should look here."""

    def progress(self, content: str, fraction: float | None = None) -> None:
        """Tell the group how far the task is. `fraction` lies between 0 and 1."""

    def search(self, *needs: str | Need, budget: int | None = None) -> Searching:
        """Ask discovery which agents fit: `await ctx.search("…")` in an async function, `ctx.search("…").result()` in a plain one.

        Args:
            needs: What somebody is needed for, in words; or `Need`s, which may carry keywords, filters and `k`. A need in words
                does not find this agent itself.
            budget: How many hits the merged list of all needs may hold.

        Raises:
            InvalidInputError: A need is empty, or not valid otherwise.
        """

    def ask(
        self,
        text: str,
        *,
        default: str,
        options: Sequence[str] = (),
        within: timedelta = timedelta(hours=1),
        role: str | None = None,
    ) -> Inquiring:
        """Ask who gave out the task, or the user of the goal: `await ctx.ask("…")`, or `ctx.ask("…").result()` in a plain function.

        The first answer counts. The discussion goes on meanwhile, and the task's lease is kept. The same question again in one
        task, also after a restart, has the same answer.

        Args:
            text: The question, up to 2,000 characters.
            default: What stands if nobody has answered in time.
            options: What may be answered, up to 16; none: any text.
            within: How long to wait; it is never more than nine tenths of the time that the task has left.
            role: As whom somebody is asked, such as an operator: then no agent answers by itself.

        Raises:
            InvalidInputError: It cannot be asked, or a member of the group is of a release without questions.
        """

    def spend(self, *, tokens: int = 0, answer_tokens: int = 0, cost: float = 0.0) -> None:
        """Report what the task has used up since the last call, so that the goal's budget is held.

        Args:
            tokens: Tokens read by a language model, or all of them where they are not told apart.
            answer_tokens: Tokens written by it.
            cost: Money, in the currency of the goal's `max_cost`.

        Raises:
            InvalidInputError: A number is negative, or none.
        """

    def artifact(self, name: str, data: bytes | str, media_type: str | None = None) -> Path:
        """Attach a file to the task's result and return where it lies; the media type is guessed from `name`."""

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
        """Ask the agent's language model: `await ctx.chat("…")` in an async function, `ctx.chat("…").result()` in a plain one.

        What it costs is counted for the goal by itself. Cancelling the task cancels the question.

        Args:
            messages: A text, or a conversation in which each call of a tool is answered.
            tools: What the model may ask for. None is run: `tool_calls` of the answer says what it wants.
            schema: A class that the answer is to be of; `parsed` holds it. What is none goes back to the model, at most twice.
            max_tokens: Where the answer is cut. It is never more than the goal's budget has left.
            may_call: False: the tools stay in sight, but the model is to answer.
            stream: Whoever follows the goal sees the answer grow, if the server can tell and no `schema` is asked for. It is a
                draft: it may be lost or begin anew, stands in no log, and is gone when the answer has come.

        Raises:
            InvalidInputError: The agent has no model, or a call in the messages has no answer.
            BudgetSpentError: Nothing is left of the goal's budget; the model was not asked.
            UnavailableError: The model cannot be reached, is overloaded or too slow, after all retries.
            ModelError: The server refuses the question, or no answer was of the class.
        """

    def tell(self, kind: type[TaskEvent], /, **what: Any) -> None:
        """Tell the agent's listeners of an event of this task, as a ReAct agent does: `ctx.tell(ToolCalled, tool="bash", …)`."""

    def trace(self, event: Mapping[str, Any]) -> None:
        """Note a step for whoever looks into the task later: one JSON object, which goes along with the result as a trace.

        A trace is neither a file of the result nor shown to any agent. What exceeds 4 MB is left out.

        Raises:
            InvalidInputError: It is no JSON object.
        """


def trace_line(event: Mapping[str, Any]) -> str:
    """Write an event of a trace as JSON in one line.

    Raises:
        InvalidInputError: It is no JSON object.
    """
    try:
        return json.dumps(dict(event), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"An event of a trace is a JSON object: {error}.") from None


def report(content: str, fraction: float | None) -> tuple[str, float | None]:
    """Make a report of progress of what an author's function says.

    Raises:
        InvalidInputError: The fraction does not lie between 0 and 1.
    """
    if fraction is not None and not 0 <= fraction <= 1:
        raise InvalidInputError(f"A fraction lies between 0 and 1, not at {fraction}.")
    return str(content), None if fraction is None else float(fraction)


def spent(tokens: int, answer_tokens: int, cost: float) -> Usage:
    """Make a usage of what an author's function says.

    Raises:
        InvalidInputError: A number is negative, or none.
    """
    try:
        return Usage(tokens_in=tokens, tokens_out=answer_tokens, cost_micros=math.ceil(cost * MICROS))
    except (ValueError, OverflowError, TypeError) as error:
        what = f"tokens={tokens!r}, answer_tokens={answer_tokens!r}, cost={cost!r}"
        raise InvalidInputError(f"Nobody can spend {what}.", hint="Give whole tokens and a cost of 0 or more.") from error


TaskFunction = Callable[..., str | Awaitable[str]]
F = TypeVar("F", bound=TaskFunction)
Look = TypeVar("Look", bound="ObserveFunction")
Speak = TypeVar("Speak", bound="SpeakFunction")
Answer = TypeVar("Answer", bound="AnswerFunction")
Keep = TypeVar("Keep", bound="KeepFunction")
Handle = TypeVar("Handle", bound="Listener")


@dataclass
class _Functions:
    """What an author has registered."""

    task: TaskFunction | None = None
    timeout: timedelta | None = None
    of_one_user: int | None = None
    observer: ObserveFunction | None = None
    speaker: SpeakFunction | None = None
    answerer: AnswerFunction | None = None
    keeper: KeepFunction | None = None
    listeners: tuple[Listener, ...] = ()


@dataclass
class AgentDefinition:
    """An agent that does not run itself; `ioa.Agent`, which does, says what the arguments mean.

    Raises:
        InvalidInputError: The card cannot be valid; the message says which field.
    """

    agent_id: str
    description: str
    name: str = ""
    skills: Sequence[str | Skill] = ()
    examples: Sequence[str] = ()
    tags: Sequence[str] = ()
    version: str = "1"
    may_team_up: bool = False
    leads: bool | None = None
    declines: bool | None = None
    patience: timedelta | None = None
    needs_sandbox: bool = False
    accepts: Sequence[str] | None = field(default=None, kw_only=True)
    model: ModelSettings | ChatModel | None = field(default=None, kw_only=True, repr=False)
    instructions: str = field(default="", kw_only=True, repr=False)
    brain: Brain | None = field(default=None, kw_only=True, repr=False)
    _own: _Functions = field(default_factory=_Functions, init=False, repr=False)

    def __post_init__(self) -> None:
        for listed in ("skills", "examples", "tags"):
            if isinstance(getattr(self, listed), str):  # a sequence too, of letters
                raise InvalidInputError(
                    f"The card of agent {self.agent_id!r} is not valid: {listed} is one text, not a list of texts.",
                    hint=f"Write {listed}=[{getattr(self, listed)!r}].",
                )
        if len(self.instructions) > MAX_INSTRUCTIONS_CHARS:
            raise InvalidInputError(
                f"The instructions of agent {self.agent_id!r} have {len(self.instructions):,} characters;"
                f" {MAX_INSTRUCTIONS_CHARS:,} are allowed.",
                hint="Put what is longer into a file that its function reads.",
            )
        self.card_as(AgentId(self.agent_id))

    @property
    def needs_model(self) -> bool:
        """Whether it can do nothing without a language model."""
        return False

    def card_as(self, agent_id: AgentId) -> AgentCard:
        """Build the card of one replica; the pool is the agent's own id."""
        try:
            return AgentCard(
                agent_id=agent_id,
                name=self.name or self.agent_id,
                description=self.description,
                skills=tuple(Skill(name=skill) if isinstance(skill, str) else skill for skill in self.skills),
                examples=tuple(self.examples),
                tags=tuple(self.tags),
                pool=PoolId(self.agent_id),
                version=self.version,
                may_team_up=self.may_team_up,
                leads=self.leads,
                declines=self.declines,
                patience=self.patience,
                accepts=None if self.accepts is None else tuple(PoolId(pool) for pool in self.accepts),
            )
        except ValidationError as error:
            raise InvalidInputError(f"The card of agent {self.agent_id!r} is not valid: {in_words(error, 'card')}.") from None

    @overload
    def task(self, function: F) -> F: ...
    @overload
    def task(self, *, timeout: timedelta | None = None, of_one_user: int | None = None) -> Callable[[F], F]: ...
    def task(
        self, function: F | None = None, *, timeout: timedelta | None = None, of_one_user: int | None = None
    ) -> F | Callable[[F], F]:
        """Register the function that runs this agent's tasks: `run(task) -> str` or `run(task, ctx) -> str`.

        A sync function runs in a thread of its own and may take its time. An async one shares the agent's event loop: whatever in
        it blocks holds up everything the agent does, its leases included.

        Args:
            function: The function, which is returned as it is.
            timeout: How long it may run, as in `@agent.task(timeout=timedelta(minutes=5))`. Then it is told to stop, and the task
                has failed. `IOA_TASK_TIMEOUT` holds for functions without one; none by default.
            of_one_user: How many of the tasks that run at once may be of one user's goals; all by default. With fewer, whoever asks
                for what takes long leaves slots to others.

        Raises:
            InvalidInputError: The function cannot be called with a task and perhaps its context, gives something else than text, or
                is the agent's second one; or the timeout is no time at all, or nothing of one user could run.
        """
        if timeout is not None and timeout <= timedelta(0):
            raise InvalidInputError(f"A task cannot be done within {timeout.total_seconds():g} s.", hint="Give it some time.")
        if of_one_user is not None and of_one_user < 1:
            raise InvalidInputError(f"No task is done if {of_one_user} of one user may run.", hint="Give of_one_user=1 at least.")
        if function is None:
            return partial(self._register, timeout=timeout, of_one_user=of_one_user)
        return self._register(function, timeout, of_one_user)

    def _register(self, function: F, timeout: timedelta | None, of_one_user: int | None) -> F:
        if self._own.task is not None:
            raise InvalidInputError(
                f"Agent {self.agent_id!r} has the task function {_name(self._own.task)} already.",
                hint=f"Make {_name(function)} the function of an agent of its own, or call it from {_name(self._own.task)}.",
            )
        _check_function(function)
        self._own.task, self._own.timeout, self._own.of_one_user = function, timeout, of_one_user
        return function

    def observe(self, function: Look) -> Look:
        """Register what this agent sees: `look(view) -> str`, sync or async, called before each of its turns and tasks.

        What it returns, at most 8,000 characters within 5 seconds, is told to this agent's own speaker and to nobody else. It may
        be called more than once for a turn, so it should only read.

        Raises:
            InvalidInputError: The function cannot be called with a view alone, or is the agent's second one.
        """
        if self._own.observer is not None:
            raise InvalidInputError(f"Agent {self.agent_id!r} has the function {_name(self._own.observer)} that observes already.")
        _check_hook(function)
        self._own.observer = function
        return function

    def speak(self, function: Speak) -> Speak:
        """Register what this agent says when it has the floor: `speak(view)`, sync or async, giving what a builder of it made.

        Nothing else decides then: what is refused comes back in `view.refusals`, as does what the function raises, of which the
        agent's log says where. After the third time the floor passes on. An agent that only speaks declines all tasks.

        Raises:
            InvalidInputError: The function cannot be called with a view alone, is the agent's second one, or the agent has a brain.
        """
        if self.brain is not None or self._own.speaker is not None:
            other = "a brain" if self.brain is not None else f"the function {_name(self._own.speaker)}"
            raise InvalidInputError(f"Agent {self.agent_id!r} has {other} that speaks already.", hint="Keep one of them.")
        _check_hook(function)
        self._own.speaker = function
        return function

    def answer(self, function: Answer) -> Answer:
        """Register what this agent answers to tasks that it has given out: `answer(asked)`, sync or async, giving a text or None.

        None leaves the question to the goal's user, or to its default. What a task asks somebody as, such as an operator, the
        function is not asked. It may be called more than once for a question, so it should only read.

        Raises:
            InvalidInputError: The function cannot be called with what is asked alone, or is the agent's second one.
        """
        if self._own.answerer is not None:
            raise InvalidInputError(f"Agent {self.agent_id!r} has the function {_name(self._own.answerer)} that answers already.")
        _check_hook(function)
        self._own.answerer = function
        return function

    def view(self, function: Keep) -> Keep:
        """Register what this agent is shown of what was said: `keep(heard) -> bool`, called with each `Heard` anew for each view.

        What it drops neither its speaker nor its tasks are shown; nothing can be added, and nobody else's view changes. A message
        of which any part is kept is shown whole. What the function fails on is not shown. It has five seconds for all of it. A
        task that has its slot does not wait for it, and is shown nothing of what was said since it was last asked.

        Raises:
            InvalidInputError: The function cannot be called with a `Heard` alone, is async, or is the agent's second one.
        """
        if self._own.keeper is not None:
            raise InvalidInputError(f"Agent {self.agent_id!r} has the filter {_name(self._own.keeper)} already.")
        if inspect.iscoroutinefunction(function):
            raise InvalidInputError(f"The filter {_name(function)} is async.", hint="Make it a plain one.")
        _check_hook(function)
        self._own.keeper = function
        return function

    def listen(self, handler: Handle) -> Handle:
        """Have a function called with each event of this agent, sync or async, as `ioa.callbacks` lists them; several may listen.

        Nothing waits for it: it is called after the fact, one event after the other, and what it raises is a line in the log.

        Raises:
            InvalidInputError: The function cannot be called with an event alone.
        """
        _check_hook(handler)
        self._own.listeners = (*self._own.listeners, handler)
        return handler

    @property
    def keeper(self) -> KeepFunction | None:
        """What the agent is shown of what was said, if its author said so."""
        return self._own.keeper

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Who is told of what happens to the agent."""
        return self._own.listeners

    @property
    def observer(self) -> ObserveFunction | None:
        """What the agent sees, if its author said so."""
        return self._own.observer

    @property
    def speaker(self) -> SpeakFunction | None:
        """What the agent says, if its author said so."""
        return self._own.speaker

    @property
    def answerer(self) -> AnswerFunction | None:
        """What the agent answers to its tasks, if its author said so."""
        return self._own.answerer

    @property
    def function(self) -> TaskFunction:
        """The registered function; one that declines every task for an agent that only speaks.

        Raises:
            InvalidInputError: Nothing was decorated with `@agent.task` or `@agent.speak`.
        """
        if self._own.task is None and self._own.speaker is None:
            raise InvalidInputError(
                f"Agent {self.agent_id!r} has no task function.",
                hint="Decorate one with @agent.task; or with @agent.speak, if it only speaks.",
            )
        return self._own.task or _only_speaks

    @property
    def timeout(self) -> timedelta | None:
        """How long the registered function may run, if its author said so."""
        return self._own.timeout

    @property
    def of_one_user(self) -> int | None:
        """How many runs of the registered function may be one user's at once, if its author said so."""
        return self._own.of_one_user

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Open what the agent needs for as long as it runs, and give the agent that has it; most need nothing.

        Raises:
            IoaError: It cannot be opened; the agent does not start.
        """
        yield self

    def with_card(self, **fields: Any) -> Self:
        """Return an agent that works alike and says something else of itself, or thinks with something else.

        Raises:
            InvalidInputError: The card cannot be valid; the message says which field.
        """
        return replace(self, **fields).working_as(self)

    def working_as(self, other: AgentDefinition) -> Self:
        """Take over another agent's functions, and return this one."""
        self._own = replace(other._own)
        return self

    def arguments(self, task: str, context: TaskContext) -> tuple[Any, ...]:
        """Return the arguments the function wants: the task, with the results that it builds on, and perhaps the context."""
        if _arity(self.function) == 2:
            return task, context
        from ioa.agent.conversation import set_off  # what only a task needs

        told = [
            set_off(repr(one.task_desc), "\n".join([*([f"(rejected: {one.rejected})"] if one.rejected else []), one.content]))
            for one in context.results
        ]
        return ("\n\n".join([task, "Results of earlier tasks:", *told]) if told else task,)


def _only_speaks(_task: str) -> NoReturn:
    raise DeclinedError("This agent only speaks, and does no tasks.")


def _check_function(function: TaskFunction) -> None:
    """Refuse at once what would fail, or give nothing that can be used, at the first task."""
    name = _name(function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInputError(
            f"{name} yields, and a task has one answer.", hint="Return the whole text; `ctx.progress` tells what is known before."
        )
    parameters = inspect.signature(function).parameters.values()
    by_name = [
        one.name
        for one in parameters
        if one.kind is inspect.Parameter.KEYWORD_ONLY and (one.default is one.empty or one.name == _CONTEXT)
    ]
    required = [one for one in parameters if one.kind in _POSITIONAL and one.default is one.empty]
    if _arity(function) not in (1, 2) or len(required) > 2 or by_name:
        takes = f", and it needs {', '.join(by_name)} by name" if by_name else ""
        raise InvalidInputError(
            f"{name} must take one argument (task) or two (task, ctx) by position{takes}.", hint="See the README's example."
        )
    told = _return_type(function)
    if told is not None and told is not str:
        raise InvalidInputError(
            f"{name} is annotated to return {getattr(told, '__name__', told)}, and the answer to a task is text.",
            hint="Return str, such as json.dumps(value); larger data goes into a file by `ctx.artifact`.",
        )


def _check_hook(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    required = [one for one in parameters if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    if _arity(function) < 1 or len(required) > 1 or (required and required[0].kind not in _POSITIONAL):
        raise InvalidInputError(f"{_name(function)} must take one argument.", hint="Write, for example: def look(view) -> str")


def _return_type(function: TaskFunction) -> object | None:
    """Return what the function says it returns; None where it says nothing, or nothing that can be told here."""
    try:
        told = get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return None
    if get_origin(told) in (Awaitable, Coroutine):
        told = get_args(told)[-1]
    return None if told in (Any, Never, NoReturn) or isinstance(told, TypeVar) else told


_CONTEXT = "ctx"
"""What the context is called: as a keyword with a default it would never be given, and nobody would notice."""
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _arity(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    return sum(1 for parameter in parameters if parameter.kind in _POSITIONAL)


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))
