"""What an agent's author may listen to: typed events, told after the fact, which nothing waits for.

A listener is called with each event in order. It decides nothing and holds up nobody: what it raises, or takes too long for, is a
line in the log. Events are of this agent alone, and hold what it was shown itself. They are not durable; the group's log is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import structlog

from ioa.agent.worker_pool import WorkerPool
from ioa.errors import reason_of
from ioa.protocol.decisions import DecidedBy
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, CommId, GoalId, TaskId
from ioa.protocol.model_calls import ModelCall

HANDLED_WITHIN = timedelta(seconds=10)
MAX_WAITING = 1_000
"""Number of events that wait for slow listeners; the oldest event above it is dropped."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class AgentEvent:
    """Something that has happened to an agent in a group."""

    me: AgentId
    goal_id: GoalId
    comm_id: CommId


@dataclass(frozen=True)
class TurnStarted(AgentEvent):
    """The agent has the floor, or a seat beside others."""

    turn: int


@dataclass(frozen=True)
class DecisionAsked(AgentEvent):
    """The agent is asked to decide, in a turn that has started. `default` stands if it does not."""

    turn: int
    about: str
    options: tuple[str, ...]
    default: str


@dataclass(frozen=True)
class Decided(AgentEvent):
    """The group has taken what the agent chose."""

    turn: int
    choice: str
    why: str
    decided_by: DecidedBy | None


@dataclass(frozen=True)
class MessageTaken(AgentEvent):
    """The group has taken what the agent said, of a kind such as `DISCUSSION`. A pass is one as well."""

    turn: int
    kind: str
    content: str
    decided_by: DecidedBy | None


@dataclass(frozen=True)
class AttemptRefused(AgentEvent):
    """Nothing was said by this attempt: the group refused it, with a code, or nothing could be made of it, without."""

    turn: int
    why: str
    code: str


@dataclass(frozen=True)
class TaskEvent(AgentEvent):
    """Something that has happened in a task."""

    task_id: TaskId


@dataclass(frozen=True)
class TaskStarted(TaskEvent):
    """The agent's function is about to be called."""

    attempt: int
    task: str


@dataclass(frozen=True)
class ToolCalled(TaskEvent):
    """A tool was run; `brought` is what its model is shown."""

    tool: str
    arguments: Mapping[str, Any]
    brought: str


@dataclass(frozen=True)
class ToolRefused(TaskEvent):
    """A guard refused a call; the tool did not run."""

    tool: str
    arguments: Mapping[str, Any]
    why: str


@dataclass(frozen=True)
class ModelCalled(AgentEvent):
    """The agent's model was asked, for a task or else for a turn. No word of it is told here."""

    call: ModelCall
    task_id: TaskId | None = None
    turn: int | None = None


@dataclass(frozen=True)
class GroupEnded(AgentEvent):
    """The group has ended."""

    reason: Reason
    content: str = field(repr=False)


Listener = Callable[[Any], Awaitable[None] | None]
"""Called with each event; what it returns is not looked at."""


class Listeners:
    """Call the listeners of one agent with each event, in order.

    Args:
        handlers: The listeners, in order.
        workers: Run the listeners.
    """

    def __init__(self, handlers: Sequence[Listener], workers: WorkerPool) -> None:
        self.handlers = handlers
        self._workers = workers
        self._waiting: deque[AgentEvent] = deque()
        self._news = asyncio.Event()

    def tell(self, event: AgentEvent) -> None:
        """Queue an event; call it only in the event loop."""
        if not self.handlers:
            return
        if len(self._waiting) >= MAX_WAITING:
            _log.warning("event_not_told", agent_id=event.me, event_kind=type(self._waiting.popleft()).__name__)
        self._waiting.append(event)
        self._news.set()

    async def serve(self) -> None:
        """Deliver events until cancelled."""
        while True:
            await self._news.wait()
            await self.catch_up()

    async def catch_up(self) -> None:
        """Deliver all queued events."""
        self._news.clear()
        while self._waiting:
            event = self._waiting.popleft()
            for handler in self.handlers:
                await self._tell(handler, event)

    async def _tell(self, handler: Listener, event: AgentEvent) -> None:
        try:
            async with self._workers.slot(HANDLED_WITHIN) as slot:
                await slot.call(handler, (event,), HANDLED_WITHIN)
        except BaseException as error:
            this = asyncio.current_task()
            if not isinstance(error, Exception) and this is not None and this.cancelling():
                raise
            name, why = (
                getattr(handler, "__name__", repr(handler)),
                reason_of(error) if isinstance(error, Exception) else repr(error),
            )
            _log.warning("listener_failed", agent_id=event.me, listener=name, event_kind=type(event).__name__, error=why)
