"""Worker pool: runs functions of authors in a limited number of slots, and abandons functions that ignore cancellation.

A sync function runs in a daemon thread, an async function in an asyncio task of its own. A cancelled function keeps its slot for a
grace period. After that it is abandoned: its slot is free, and it is counted until it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from ioa.agent.metrics import abandoned_functions
from ioa.cancellation import fail_after
from ioa.errors import TaskError
from ioa.fair_semaphore import FairSemaphore

_slots: contextvars.ContextVar[Sequence[Slot]] = contextvars.ContextVar("slots", default=())

_log = structlog.get_logger(__name__)


class OutOfTimeError(TaskError):
    """A function exceeded its timeout."""


@dataclass(frozen=True)
class _Outcome:
    """The result of a function. An exception is stored as a value, because a future rejects `StopIteration` and `SystemExit`."""

    answer: Any = None
    error: BaseException | None = None


class WorkerPool:
    """Run functions of one agent, `slots` at once. Users whose functions wait for a slot are served round-robin.

    Args:
        owner: Name of the agent, for errors and logs.
        slots: Functions that run at once.
        grace: How long a cancelled function keeps its slot.
    """

    def __init__(self, owner: str, slots: int, grace: timedelta) -> None:
        self.owner = owner
        self.grace = grace.total_seconds()
        self.semaphore = FairSemaphore(slots)
        self.running = set[Slot]()
        self.abandoned_slots = set[Slot]()
        """Slots of abandoned functions that still run, including those in other pools that functions of this pool called."""
        self._slots = slots

    @property
    def abandoned(self) -> int:
        """Number of functions that were abandoned and still run."""
        return len(self.abandoned_slots)

    @asynccontextmanager
    async def slot(self, within: timedelta, user: str | None = None) -> AsyncIterator[Slot]:
        """Wait for a slot, in which one function can be called.

        Args:
            within: Longest time to wait.
            user: The user whose goal the function works for.

        Raises:
            TaskError: No slot was free in time.
        """
        key = user or ""
        try:
            async with fail_after(within.total_seconds()):
                await self.semaphore.acquire(key)
        except TimeoutError:
            raise TaskError(
                f"None of the {self._slots} slots of {self.owner} was free within {within.total_seconds():g} s.",
                hint="Give the task to another agent, or to this one later.",
            ) from None
        slot = Slot(self, key)
        try:
            yield slot
        finally:
            if not slot.was_called:
                slot.release()

    async def until_ended(self, within: timedelta) -> None:
        """Wait until all cancelled functions have ended, at most `within`."""
        if stopping := [slot.ended for slot in self.running if slot.is_stopping]:
            await asyncio.wait(stopping, timeout=within.total_seconds())


def current_slots() -> Sequence[Slot]:
    """Return the slots of the functions that the caller runs in, the outermost first."""
    return _slots.get()


class Slot:
    """The right to run one function. `ended` is done when the function has ended."""

    def __init__(self, pool: WorkerPool, user: str) -> None:
        self.pool = pool
        self.ended: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self.was_called = False
        self.is_stopping = False
        self._user = user
        self._has_slot = True
        self._waits = 0
        """Number of `aside` blocks that are open."""
        self._task: asyncio.Task[None] | None = None
        self._timeout: asyncio.Timeout | None = None
        self._left: float | None = None
        """Seconds that were left of the timeout when it was paused."""

    @property
    def is_over(self) -> bool:
        """True if no function runs in the slot."""
        return not self.was_called or self.ended.done()

    def when_over(self, then: Callable[[], object]) -> None:
        """Call `then` in the event loop when the function has ended."""
        self.ended.add_done_callback(lambda _: then())

    def release(self) -> None:
        """Return the slot to the pool, once."""
        if self._has_slot:
            self._has_slot = False
            self.pool.semaphore.release(self._user)

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Release the slot inside the block, in which the function waits. The time does not count towards its timeout.

        After the block the function waits for a slot again.
        """
        self._waits += 1
        if self._waits == 1:
            self._pause_timeout()
            self.release()
        try:
            yield
            if self._waits == 1 and not self._is_given_up:
                await self.pool.semaphore.acquire(self._user)
                self._has_slot = True
        finally:
            self._waits -= 1
            if self._waits or self._is_given_up:
                self.release()
            if not self._waits and self._timeout is not None and not self._timeout.expired() and self._left is not None:
                self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], timeout: timedelta | None = None) -> Any:
        """Call a function and return its result. Cancellation cancels the function and does not wait for its end.

        Args:
            function: A sync function, which runs in a thread of its own, or an async function.
            arguments: Its arguments.
            timeout: Maximum run time; None: no limit.

        Raises:
            OutOfTimeError: The function exceeded the timeout.
        """
        slots = (*_slots.get(), self)
        self.was_called = True
        self.pool.running.add(self)
        self.ended.add_done_callback(lambda _: self._settle(slots))
        self._start(function, arguments, slots)
        try:
            async with fail_after(None if timeout is None else timeout.total_seconds()) as self._timeout:
                outcome = await asyncio.shield(self.ended)
        except TimeoutError:
            self._stop(function, slots)
            assert timeout is not None
            limit = f"{timeout.total_seconds():g} s"
            raise OutOfTimeError(f"The function of {self.pool.owner} was not done within {limit}.") from None
        except asyncio.CancelledError:
            self._stop(function, slots)
            raise
        finally:
            self._timeout = None
        if outcome.error is not None:
            raise outcome.error
        return outcome.answer

    @property
    def _is_given_up(self) -> bool:
        return self.is_stopping or self.ended.done()

    def _pause_timeout(self) -> None:
        self._left = None
        if self._timeout is not None and not self._timeout.expired() and (due := self._timeout.when()) is not None:
            self._left = due - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def _start(self, function: Callable[..., Any], arguments: tuple[Any, ...], slots: Sequence[Slot]) -> None:
        """Start the function; a daemon thread does not keep the process alive."""
        context, loop = contextvars.copy_context(), asyncio.get_running_loop()
        context.run(_slots.set, slots)

        def work() -> None:
            try:
                outcome = _Outcome(answer=context.run(function, *arguments))
            except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
                outcome = _Outcome(error=error)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._end, outcome, context)

        if inspect.iscoroutinefunction(function):
            self._await(function(*arguments), context)
        else:
            threading.Thread(target=work, name=getattr(function, "__name__", "task"), daemon=True).start()

    def _stop(self, function: Callable[..., Any], slots: Sequence[Slot]) -> None:
        """Cancel an async function; a sync function checks `ctx.cancelled`. Abandon it after the grace period."""
        self.is_stopping = True
        if self._task is not None:
            self._task.cancel()
        if not self.ended.done():
            name = getattr(function, "__name__", "task")
            asyncio.get_running_loop().call_later(self.pool.grace, self._abandon, name, slots)

    def _abandon(self, name: str, slots: Sequence[Slot]) -> None:
        if self.ended.done():
            return
        for slot in slots:
            slot.pool.abandoned_slots.add(self)
        abandoned_functions.inc()
        _log.error("function_abandoned", agent_id=self.pool.owner, function=name, abandoned=self.pool.abandoned)
        self.release()

    def _settle(self, slots: Sequence[Slot]) -> None:
        self.pool.running.discard(self)
        self.release()
        if self in self.pool.abandoned_slots:
            for slot in slots:
                slot.pool.abandoned_slots.discard(self)
            abandoned_functions.dec()
            _log.info("abandoned_function_ended", agent_id=self.pool.owner)

    def _await(self, answer: Awaitable[Any], context: contextvars.Context) -> None:
        async def follow() -> None:
            try:
                outcome = _Outcome(answer=await answer)
            except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
                outcome = _Outcome(error=error)
            self._end(outcome)

        def end(_: asyncio.Task[None]) -> None:
            if inspect.iscoroutine(answer):
                answer.close()  # a coroutine that was cancelled before it started would warn
            self._end(_Outcome(error=asyncio.CancelledError()))

        self._task = asyncio.get_running_loop().create_task(follow(), context=context)
        self._task.add_done_callback(end)

    def _end(self, outcome: _Outcome, context: contextvars.Context | None = None) -> None:
        """Set the outcome; an awaitable that a sync function returned is awaited first."""
        if context is not None and inspect.isawaitable(outcome.answer):
            if self.is_stopping and inspect.iscoroutine(outcome.answer):
                outcome.answer.close()
            else:
                self._await(outcome.answer, context)
                return
        if not self.ended.done():
            self.ended.set_result(outcome)
