"""Structured concurrency: task groups and timeouts with fixes of newer CPython versions, and coroutines that run during a block.

All modules import them from here. Debian 12 has CPython 3.11.2. A single error is raised as it is, and not in an exception group.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class TaskGroup(asyncio.TaskGroup):
    """Task group that cancels the waiting task again only for a cancellation during the block.

    If a task fails while the block is cancelled from outside, CPython 3.11 and 3.12 lose the cancellation (python/cpython#116720).
    If a task fails while the group waits for its tasks, they count the waiting task as cancelled. CPython 3.13 and newer also
    repeat a cancellation from before the block, which would interrupt a task that cleans up.
    """

    _parent_task: asyncio.Task[Any]
    _parent_cancel_requested: bool
    _cancelled_before = 0

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._cancelled_before = self._parent_task.cancelling()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        is_uncounted = self._parent_cancel_requested
        try:
            await super().__aexit__(kind, error, traceback)
        except BaseExceptionGroup:
            waiting = self._parent_task
            if sys.version_info < (3, 13):
                if self._parent_cancel_requested and not is_uncounted:
                    waiting.uncancel()
            elif waiting.cancelling():
                with suppress(asyncio.CancelledError):  # CPython has cancelled the task again
                    await asyncio.sleep(0)
            if waiting.cancelling() > self._cancelled_before:
                waiting.uncancel()
                waiting.cancel()
            raise


class _Timeout(asyncio.Timeout):  # type: ignore[misc]  # final for type checkers only
    """Timeout of CPython 3.11.3 (python/cpython#102780): it also raises `TimeoutError` in a task that was cancelled before it."""

    _task: asyncio.Task[Any]
    _cancelled_before = 0

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._cancelled_before = self._task.cancelling()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, traceback)
        if self.expired() and isinstance(error, asyncio.CancelledError) and self._task.cancelling() <= self._cancelled_before:
            raise TimeoutError from error


def _fail_after(delay: float | None) -> asyncio.Timeout:
    return _Timeout(None if delay is None else asyncio.get_running_loop().time() + delay)


_HAS_LIMITS = sys.version_info >= (3, 11, 3)
fail_after: Callable[[float | None], asyncio.Timeout] = asyncio.timeout if _HAS_LIMITS else _fail_after
fail_at: Callable[[float | None], asyncio.Timeout] = asyncio.timeout_at if _HAS_LIMITS else _Timeout


class heeding_cancellation:  # noqa: N801  # reads like a statement
    """Raise `CancelledError` at the end of the block if the task was cancelled in the block.

    Before CPython 3.12, `asyncio.wait_for`, which nats-py uses, loses a cancellation that arrives together with the result
    (python/cpython#86296). A loop that runs until cancelled would then never end.
    """

    __slots__ = ("_before", "_task")

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._before = self._task.cancelling() if self._task is not None else 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        is_over = error is None or isinstance(error, Exception)
        if is_over and self._task is not None and self._task.cancelling() > self._before:
            raise asyncio.CancelledError from error


@asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None], stop: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """Run coroutines while the block runs; all of them have ended after the block.

    If a coroutine fails, the block is cancelled. A single error is raised as it is.

    Args:
        coroutines: The coroutines.
        stop: Called at the end of the block; the coroutines must then end by themselves. Without it, or if the block is cancelled,
            they are cancelled.
    """
    raised: BaseException | None = None
    try:
        async with TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
            try:
                yield
            except BaseException as error:  # noqa: BLE001 - raised below, outside of the task group
                raised = error
            if stop is not None and not isinstance(raised, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                stop()
                await asyncio.wait(tasks)
            for task in tasks:
                task.cancel()
            if raised is not None:
                raise raised
    except BaseExceptionGroup as errors:
        if raised is not None and not isinstance(raised, asyncio.CancelledError):
            raise raised from None
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise


async def together(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Run coroutines concurrently, and return their results in order.

    If a coroutine fails, the others are cancelled, and the first error is raised as it is.
    """
    try:
        async with TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
