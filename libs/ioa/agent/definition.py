"""Definition of an agent by its author: its card, and the functions that do its tasks and speak in its turns."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, overload

from pydantic import ValidationError

from ioa.errors import DeclinedError, InvalidInputError
from ioa.protocol.cards import AgentCard, Skill
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.texts import in_words

if TYPE_CHECKING:  # an author's file loads only what a card needs
    from ioa.adapters.openai.settings import ModelSettings
    from ioa.agent.agent_events import EventFunction
    from ioa.agent.brain_port import Brain
    from ioa.agent.task_context import TaskContext
    from ioa.agent.turn_view import Said, TurnView
    from ioa.ports.chat_model import ChatModel

MAX_INSTRUCTIONS_CHARS = 8_000
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

TaskFunction = Callable[..., str | Awaitable[str]]
F = TypeVar("F", bound=TaskFunction)
Speak = TypeVar("Speak", bound="Callable[[TurnView], Said | Awaitable[Said]]")


@dataclass
class _Functions:
    """The registered functions."""

    task: TaskFunction | None = None
    timeout: timedelta | None = None
    speaker: Callable[[TurnView], Said | Awaitable[Said]] | None = None


@dataclass
class AgentDefinition:
    """An agent that cannot run itself; `ioa.Agent` documents the arguments.

    Raises:
        InvalidInputError: The card is not valid.
    """

    agent_id: str
    description: str
    examples: Sequence[str] = field(default=(), kw_only=True)
    skills: Sequence[str | Skill] = field(default=(), kw_only=True)
    tags: Sequence[str] = field(default=(), kw_only=True)
    model: ModelSettings | ChatModel | None = field(default=None, kw_only=True, repr=False)
    instructions: str | Callable[[TurnView], str | Awaitable[str]] = field(default="", kw_only=True, repr=False)
    brain: Brain | None = field(default=None, kw_only=True, repr=False)
    may_team_up: bool = field(default=False, kw_only=True)
    leads: bool | None = field(default=None, kw_only=True)
    declines: bool | None = field(default=None, kw_only=True)
    accepts: Sequence[str] | None = field(default=None, kw_only=True)
    needs_sandbox: bool = field(default=False, kw_only=True)
    on_event: EventFunction | None = field(default=None, kw_only=True, repr=False)
    _own: _Functions = field(default_factory=_Functions, init=False, repr=False)

    def __post_init__(self) -> None:
        for listed in ("skills", "examples", "tags"):
            if isinstance(getattr(self, listed), str):  # a sequence too, of letters
                raise InvalidInputError(
                    f"The card of agent {self.agent_id!r} is not valid: {listed} is one text, not a list of texts.",
                    hint=f"Write {listed}=[{getattr(self, listed)!r}].",
                )
        if len(self.fixed_instructions) > MAX_INSTRUCTIONS_CHARS:
            raise InvalidInputError(
                f"The instructions of agent {self.agent_id!r} have {len(self.fixed_instructions):,} characters;"
                f" {MAX_INSTRUCTIONS_CHARS:,} are allowed.",
                hint="Put the rest into a file that its function reads.",
            )
        self.card_as(AgentId(self.agent_id))

    @property
    def needs_model(self) -> bool:
        """True if the agent works only with a language model."""
        return False

    @property
    def fixed_instructions(self) -> str:
        """The instructions; empty if a function returns them."""
        return self.instructions if isinstance(self.instructions, str) else ""

    def card_as(self, agent_id: AgentId) -> AgentCard:
        """Build the card of one replica; the pool is the agent's own id."""
        try:
            return AgentCard(
                agent_id=agent_id,
                name=self.agent_id,
                description=self.description,
                skills=tuple(Skill(name=skill) if isinstance(skill, str) else skill for skill in self.skills),
                examples=tuple(self.examples),
                tags=tuple(self.tags),
                pool=PoolId(self.agent_id),
                may_team_up=self.may_team_up,
                uses_model=self.needs_model or bool(self.instructions),
                leads=self.leads,
                declines=self.declines,
                accepts=None if self.accepts is None else tuple(PoolId(pool) for pool in self.accepts),
            )
        except ValidationError as error:
            raise InvalidInputError(f"The card of agent {self.agent_id!r} is not valid: {in_words(error, 'card')}.") from None

    @overload
    def task(self, function: F) -> F: ...
    @overload
    def task(self, *, timeout: timedelta | None = None) -> Callable[[F], F]: ...
    def task(self, function: F | None = None, *, timeout: timedelta | None = None) -> F | Callable[[F], F]:
        """Register the function that does this agent's tasks: `run(task) -> str` or `run(task, ctx) -> str`.

        A sync function runs in a thread of its own. An async function runs in the agent's event loop and must not block it.

        Args:
            function: The function, which is returned unchanged.
            timeout: Maximum run time, as in `@agent.task(timeout=timedelta(minutes=5))`; then the function is cancelled and the
                task fails. Default: no timeout.

        Raises:
            InvalidInputError: The function has other parameters, or is the second one; or the timeout is 0.
        """
        if timeout is not None and timeout <= timedelta(0):
            raise InvalidInputError(f"`timeout` must be more than 0 s; got {timeout.total_seconds():g} s.")
        if function is None:
            return partial(self._register, timeout=timeout)
        return self._register(function, timeout)

    def _register(self, function: F, timeout: timedelta | None) -> F:
        if self._own.task is not None:
            raise InvalidInputError(
                f"Agent {self.agent_id!r} has the task function {_name(self._own.task)} already.",
                hint=f"Define another agent for {_name(function)}, or call it from {_name(self._own.task)}.",
            )
        _check_function(function)
        self._own.task, self._own.timeout = function, timeout
        return function

    def speak(self, function: Speak) -> Speak:
        """Register the function that sends this agent's messages: `speak(view)`, sync or async, which returns what a builder made.

        If its message is rejected, or if it raises, it is called again, with the reason in `view.refusals`. After the third time
        the floor passes on. An agent with this function alone declines all tasks.

        Raises:
            InvalidInputError: The function has other parameters, is the second one, or the agent has a brain.
        """
        if self.brain is not None or self._own.speaker is not None:
            other = "a brain" if self.brain is not None else f"the function {_name(self._own.speaker)}"
            raise InvalidInputError(f"Agent {self.agent_id!r} has {other} that speaks already.", hint="Keep one of them.")
        if not _takes(function, 1):
            raise InvalidInputError(f"{_name(function)} must take one argument.", hint="Write: def speak(view)")
        self._own.speaker = function
        return function

    @property
    def speaker(self) -> Callable[[TurnView], Said | Awaitable[Said]] | None:
        """The registered function that speaks."""
        return self._own.speaker

    @property
    def function(self) -> TaskFunction:
        """The registered task function; one that declines every task for an agent that only speaks.

        Raises:
            InvalidInputError: No function was registered.
        """
        if self._own.task is None and self._own.speaker is None:
            raise InvalidInputError(
                f"Agent {self.agent_id!r} has no task function.",
                hint="Decorate one with @agent.task; or with @agent.speak, if it only speaks.",
            )
        return self._own.task or _only_speaks

    @property
    def timeout(self) -> timedelta | None:
        """The timeout of the registered task function."""
        return self._own.timeout

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Open the resources that the agent needs while it runs, and yield the agent that uses them.

        Raises:
            IoaError: A resource cannot be opened; the agent does not start.
        """
        yield self

    def with_card(self, **fields: Any) -> Self:
        """Return an agent with the same functions and other arguments.

        Raises:
            InvalidInputError: The card is not valid.
        """
        return replace(self, **fields).working_as(self)

    def working_as(self, other: AgentDefinition) -> Self:
        """Take over another agent's functions, except a task function that this agent's class has registered."""
        self._own = replace(other._own, task=self._own.task or other._own.task)
        return self

    def arguments(self, task: str, context: TaskContext) -> tuple[Any, ...]:
        """Return the function's arguments: the task with the results that it uses, or the task and the context."""
        if _arity(self.function) == 2:
            return task, context
        from ioa.agent.view_text import with_results  # needed for a task only

        return (with_results(task, context),)


def _only_speaks(_task: str) -> NoReturn:
    raise DeclinedError("This agent only speaks, and does no tasks.")


def _check_function(function: TaskFunction) -> None:
    """Reject a function that would fail at the first task."""
    arity = _arity(function)
    if arity not in (1, 2) or not _takes(function, arity):
        raise InvalidInputError(
            f"{_name(function)} must take one argument (task) or two (task, ctx) by position.", hint="See the README's example."
        )


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return True if a function accepts this number of positional arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True


def _arity(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    return sum(1 for parameter in parameters if parameter.kind in _POSITIONAL)


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))
