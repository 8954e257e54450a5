"""Worker pool: runs functions of authors in a limited number of slots, and abandons functions that ignore cancellation.

A sync function runs in a daemon thread, an async function in an asyncio task of its own. A cancelled function keeps its
slot for a grace period. After that it is abandoned: its slot is free, and it is counted until it ends.
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

from ioa.agent.agent_metrics import abandoned_functions
from ioa.cancellation import fail_after
from ioa.errors import TaskError
from ioa.fair_semaphore import FairSemaphore

_slots: contextvars.ContextVar[Sequence[Slot]] = contextvars.ContextVar("slots", default=())

_log = structlog.get_logger(__name__)


class OutOfTimeError(TaskError):
    """A function exceeded its timeout."""


@dataclass(frozen=True)
class _Outcome:
    """The result of a run. An exception is stored as a value, because a future rejects `StopIteration` and `SystemExit`."""

    answer: Any = None
    error: BaseException | None = None


class WorkerPool:
    """Run functions of one agent, `slots` at once. Users whose functions wait for a slot are served round-robin.

    Args:
        owner: Name of the agent, for errors and logs.
        slots: Functions that run at once.
        grace: How long a cancelled function keeps its slot.
        per_user: Functions of one user that run at once; None: `slots`.
    """

    def __init__(self, owner: str, slots: int, grace: timedelta, per_user: int | None = None) -> None:
        self._owner = owner
        self._slots = slots
        self._per_user = slots if per_user is None else min(per_user, slots)
        self._semaphore = FairSemaphore(slots, per_key=self._per_user)
        self._grace = grace.total_seconds()
        self._runs = set[_Run]()
        self.abandoned_runs = set[_Run]()
        """Runs that were abandoned and still go on, including runs in other pools that functions of this pool have started."""

    @property
    def abandoned(self) -> int:
        """Number of functions that were abandoned and still run."""
        return len(self.abandoned_runs)

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
                await self._semaphore.acquire(key)
        except TimeoutError:
            slots = f"{self._slots} slots" + (f", {self._per_user} for one user," if self._per_user < self._slots else "")
            raise TaskError(
                f"None of the {slots} of {self._owner} was free within {within.total_seconds():g} s.",
                hint="Give the task to another agent, or to this one later.",
            ) from None
        slot = Slot(self, key)
        try:
            yield slot
        finally:
            if slot.run is None:
                self._semaphore.release(key)

    async def call(self, run: _Run, timeout: timedelta | None) -> Any:
        """Call a function in its slot; see `Slot.call`."""
        self._runs.add(run)
        run.ended.add_done_callback(lambda _: self._settle(run))
        run.start()
        try:
            async with fail_after(None if timeout is None else timeout.total_seconds()) as run.limit:
                outcome = await asyncio.shield(run.ended)
        except TimeoutError:
            self._stop(run)
            assert timeout is not None
            raise OutOfTimeError(f"The function of {self._owner} was not done within {timeout.total_seconds():g} s.") from None
        except asyncio.CancelledError:
            self._stop(run)
            raise
        finally:
            run.limit = None
        if outcome.error is not None:
            raise outcome.error
        return outcome.answer

    async def until_ended(self, within: timedelta) -> None:
        """Wait until all cancelled functions have ended, at most `within`."""
        if stopping := [run.ended for run in self._runs if run.is_stopping]:
            await asyncio.wait(stopping, timeout=within.total_seconds())

    @asynccontextmanager
    async def aside(self, run: _Run) -> AsyncIterator[None]:
        """Release the slot of a run inside the block; see `Slot.aside`."""
        run.waits += 1
        if run.waits == 1:
            run.pause_timeout()
            self._release(run)
        try:
            yield
            if run.waits == 1 and not run.is_over:
                await self._semaphore.acquire(run.user)
                run.has_slot = True
        finally:
            run.waits -= 1
            if run.waits or run.is_over:
                self._release(run)
            if not run.waits:
                run.resume_timeout()

    def _release(self, run: _Run) -> None:
        if run.has_slot:
            run.has_slot = False
            self._semaphore.release(run.user)

    def _stop(self, run: _Run) -> None:
        run.stop()
        if not run.ended.done():
            asyncio.get_running_loop().call_later(self._grace, self._abandon, run)

    def _abandon(self, run: _Run) -> None:
        if run.ended.done():
            return
        run.is_abandoned = True
        for slot in run.slots:
            slot.pool.abandoned_runs.add(run)
        abandoned_functions.inc()
        _log.error("function_abandoned", agent_id=self._owner, function=run.name, abandoned=self.abandoned)
        self._release(run)

    def _settle(self, run: _Run) -> None:
        self._runs.discard(run)
        self._release(run)
        if run.is_abandoned:
            for slot in run.slots:
                slot.pool.abandoned_runs.discard(run)
            abandoned_functions.dec()
            _log.info("abandoned_function_ended", agent_id=self._owner, function=run.name)


def current_slots() -> Sequence[Slot]:
    """Return the slots of the functions that the caller runs in, the outermost first."""
    return _slots.get()


class Slot:
    """The right to call one function."""

    def __init__(self, pool: WorkerPool, user: str) -> None:
        self.pool = pool
        self.user = user
        self.run: _Run | None = None

    @property
    def is_over(self) -> bool:
        """True if no function runs in the slot, abandoned or not."""
        return self.run is None or self.run.ended.done()

    def when_over(self, then: Callable[[], object]) -> None:
        """Call `then` in the event loop when the function has ended."""
        assert self.run is not None, "only a called function ends"
        self.run.ended.add_done_callback(lambda _: then())

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Release the slot inside the block, in which the function waits. The time does not count towards its timeout.

        After the block the function waits for a slot again.
        """
        assert self.run is not None, "only a called function waits"
        async with self.pool.aside(self.run):
            yield

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...], timeout: timedelta | None = None) -> Any:
        """Call a function and return its result. Cancellation cancels the function and does not wait for its end.

        Args:
            function: A sync function, which runs in a thread of its own, or an async function.
            arguments: Its arguments.
            timeout: Maximum run time; None: no limit.

        Raises:
            OutOfTimeError: The function exceeded the timeout.
        """
        self.run = _Run(function, arguments, (*_slots.get(), self))
        return await self.pool.call(self.run, timeout)


class _Run:
    """One run of a function. `ended` is set when the function has ended."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], slots: Sequence[Slot]) -> None:
        self._function = function
        self._arguments = arguments
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._context.run(_slots.set, slots)
        self._task: asyncio.Task[None] | None = None
        self._left: float | None = None
        self.slots = slots
        self.user = slots[-1].user
        self.name = getattr(function, "__name__", "task")
        self.ended: asyncio.Future[_Outcome] = self._loop.create_future()
        self.is_stopping = False
        self.is_abandoned = False
        self.has_slot = True
        self.limit: asyncio.Timeout | None = None
        self.waits = 0
        """Number of `aside` blocks that are open."""

    @property
    def is_over(self) -> bool:
        """True if the run was cancelled or has ended."""
        return self.is_stopping or self.ended.done()

    def pause_timeout(self) -> None:
        """Stop the timeout."""
        self._left = None
        if self.limit is not None and not self.limit.expired() and (due := self.limit.when()) is not None:
            self._left = due - self._loop.time()
            self.limit.reschedule(None)

    def resume_timeout(self) -> None:
        """Continue the timeout with the time that was left."""
        if self.limit is not None and not self.limit.expired() and self._left is not None:
            self.limit.reschedule(self._loop.time() + self._left)

    def start(self) -> None:
        """Start the function; a daemon thread does not keep the process alive."""
        if inspect.iscoroutinefunction(self._function):
            self._await(self._function(*self._arguments))
        else:
            threading.Thread(target=self._work, name=self.name, daemon=True).start()

    def stop(self) -> None:
        """Cancel an async function. A sync function checks `ctx.cancelled`."""
        self.is_stopping = True
        if self._task is not None:
            self._task.cancel()

    def _work(self) -> None:
        try:
            outcome = _Outcome(answer=self._context.run(self._function, *self._arguments))
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
            outcome = _Outcome(error=error)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._return, outcome)

    def _return(self, outcome: _Outcome) -> None:
        """Handle the result of a thread; a sync function may return an awaitable."""
        if inspect.iscoroutine(outcome.answer) and self.is_stopping:
            outcome.answer.close()
        elif inspect.isawaitable(outcome.answer):
            self._await(outcome.answer)
            return
        self._end(outcome)

    def _await(self, answer: Awaitable[Any]) -> None:
        def end(_: asyncio.Task[None]) -> None:
            if inspect.iscoroutine(answer):
                answer.close()  # a coroutine that was cancelled before it started would warn
            self._end(_Outcome(error=asyncio.CancelledError()))

        self._task = self._loop.create_task(self._follow(answer), context=self._context)
        self._task.add_done_callback(end)

    async def _follow(self, answer: Awaitable[Any]) -> None:
        try:
            outcome = _Outcome(answer=await answer)
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
            outcome = _Outcome(error=error)
        self._end(outcome)

    def _end(self, outcome: _Outcome) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)
