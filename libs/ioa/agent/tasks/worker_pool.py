"""Worker pool: runs functions of authors in a limited number of slots.

A sync function runs in a daemon thread, an async function in an asyncio task of its own. A cancelled function gives its slot back
at once, and is counted until it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

from ioa.concurrency import fail_after
from ioa.errors import TaskError
from ioa.fair_semaphore import FairSemaphore

T = TypeVar("T")
_Outcome = tuple[Any, BaseException | None]
"""The answer of a function, or its exception: a task and a future reject `StopIteration` and `SystemExit`."""

_slots: contextvars.ContextVar[Sequence[Slot]] = contextvars.ContextVar("slots", default=())


class OutOfTimeError(TaskError):
    """A function exceeded its timeout."""


class WorkerPool:
    """Run functions of one agent, `slots` at once. Users whose functions wait for a slot are served round-robin.

    Args:
        owner: Name of the agent, for errors and logs.
        slots: Functions that run at once.

    Attributes:
        stopping: Cancelled functions that still run, including those in other pools that functions of this pool called.
    """

    def __init__(self, owner: str, slots: int) -> None:
        self.owner = owner
        self.semaphore = FairSemaphore(slots)
        self.stopping = set[asyncio.Task[_Outcome]]()
        self._slots = slots

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
            slot.release()

    async def until_ended(self, within: timedelta) -> None:
        """Wait until all cancelled functions have ended, at most `within`."""
        if self.stopping:
            await asyncio.wait(self.stopping, timeout=within.total_seconds())


async def wait_aside(ask: Callable[[], Awaitable[T]]) -> T:
    """Return an answer that may take days; other functions use the slots of the caller's functions until it arrives."""
    async with AsyncExitStack() as stack:
        for slot in _slots.get():
            await stack.enter_async_context(slot.aside())
        return await ask()


class Slot:
    """The right to run one function."""

    def __init__(self, pool: WorkerPool, user: str) -> None:
        self.pool = pool
        self._user = user
        self._has_slot = True
        self._running: asyncio.Task[_Outcome] | None = None
        self._is_in_thread = self._is_stopping = False
        self._waits = 0
        """Number of `aside` blocks that are open."""
        self._timeout: asyncio.Timeout | None = None
        self._left: float | None = None
        """Seconds that were left of the timeout when it was paused."""

    def when_over(self, then: Callable[[], object]) -> None:
        """Call `then` in the event loop when the function has ended, or now if none runs."""
        if self._running is None or self._running.done():
            then()
        else:
            self._running.add_done_callback(lambda _: then())

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
            TaskError: The function raised an exception that would end the process, such as `SystemExit`.
            Exception: The function raised it.
        """
        slots, context = (*_slots.get(), self), contextvars.copy_context()
        context.run(_slots.set, slots)
        running = asyncio.get_running_loop().create_task(self._run(function, arguments), context=context)
        self._running = running
        running.add_done_callback(lambda _: self.release())
        try:
            async with fail_after(None if timeout is None else timeout.total_seconds()) as self._timeout:
                await asyncio.wait([running])
        except (TimeoutError, asyncio.CancelledError) as error:
            self._stop(running, slots)
            if timeout is None or not isinstance(error, TimeoutError):
                raise
            limit = f"{timeout.total_seconds():g} s"
            raise OutOfTimeError(f"The function of {self.pool.owner} was not done within {limit}.") from None
        finally:
            self._timeout = None
        answer, failure = running.result()
        if isinstance(failure, Exception):
            raise failure
        if failure is not None:
            raise TaskError(f"The function of {self.pool.owner} raised {type(failure).__name__}: {failure}") from failure
        return answer

    @property
    def _is_given_up(self) -> bool:
        return self._is_stopping or self._running is None or self._running.done()

    def _pause_timeout(self) -> None:
        self._left = None
        if self._timeout is not None and not self._timeout.expired() and (due := self._timeout.when()) is not None:
            self._left = due - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    async def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Outcome:
        """Run the function; an awaitable that a sync function returned is awaited."""
        try:
            if inspect.iscoroutinefunction(function):
                return await function(*arguments), None
            answer, failure = await self._run_in_thread(function, arguments)
            if inspect.isawaitable(answer) and not self._is_stopping:
                answer = await answer
            elif inspect.iscoroutine(answer):
                answer.close()
        except BaseException as error:  # noqa: BLE001 - raised where the function was called
            return None, error
        return answer, failure

    async def _run_in_thread(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Outcome:
        """Run a sync function in a daemon thread, which does not keep the process alive."""
        context, ended = contextvars.copy_context(), Future[_Outcome]()
        ended.set_running_or_notify_cancel()

        def work() -> None:
            try:
                ended.set_result((context.run(function, *arguments), None))
            except BaseException as error:  # noqa: BLE001 - raised where the function was called
                ended.set_result((None, error))

        threading.Thread(target=work, name=getattr(function, "__name__", "task"), daemon=True).start()
        self._is_in_thread = True
        try:
            return await asyncio.wrap_future(ended)
        finally:
            self._is_in_thread = False

    def _stop(self, running: asyncio.Task[_Outcome], slots: Sequence[Slot]) -> None:
        """Cancel an async function; a sync function checks `ctx.cancelled`."""
        self._is_stopping = True
        self.release()
        if not self._is_in_thread:
            running.cancel()
        for slot in slots:
            slot.pool.stopping.add(running)
            running.add_done_callback(slot.pool.stopping.discard)
