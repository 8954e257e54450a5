"""Running things side by side, and beside a block: what is raised comes out as it was raised, and a cancellation comes through."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class _TaskGroup(asyncio.TaskGroup):
    """A task group as it is since CPython 3.13 (python/cpython#116720).

    Where a task fails in the moment in which the block is cancelled from outside, the one before raises the error alone: whoever
    tries again after such an error goes on for ever, and what waits for its end hangs. The error is raised, and what is waited for
    next is cancelled. And where a task fails while the group waits for its tasks, it leaves whoever waits counted as cancelled.
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
            if self._parent_cancel_requested and not is_uncounted:
                waiting.uncancel()
            if waiting.cancelling() > self._cancelled_before:
                waiting.uncancel()
                waiting.cancel()
            raise


TaskGroup = asyncio.TaskGroup if sys.version_info >= (3, 13) else _TaskGroup


@asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None], stop: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """Run coroutines beside the body; all of them have ended when the block has.

    If one fails, the body is cancelled. Unlike a bare task group this raises the one error that there is: who enters a context
    manager expects the error that its docstring names, and a test's assertion within a group would be hard to read.

    Args:
        coroutines: What runs.
        stop: Tells them to end by themselves when the body is left. Without it, or if the block is cancelled, they are cancelled.
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
    """Run coroutines side by side and return what each of them returns, in order; all have ended when this does.

    If one fails, the others are cancelled, and the first error is raised as it is, which a bare task group would wrap. Those of
    `asyncio.gather` go on, and nobody hears of their errors.
    """
    try:
        async with TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
