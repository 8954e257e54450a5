"""Structured concurrency that raises a single error as it is, and not in an exception group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ioa.cancellation import TaskGroup

T = TypeVar("T")


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
