"""Running things beside a block, so that what the block raises comes out as it was raised."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ioa.cancellation import TaskGroup

T = TypeVar("T")


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
