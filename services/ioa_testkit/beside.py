"""Running things beside a test's own block, so that what the block raises comes out as it was raised."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines beside the body and cancel them when it is left; all of them have ended when the block has.

    If one fails, the body is cancelled. Unlike a bare task group this raises the one error that there is: an assertion of a test
    that came out in an exception group would be hard to read, and `pytest.raises` would not see it.
    """
    raised: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
            try:
                yield
            except BaseException as error:
                raised = error
                raise
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as errors:
        if raised is not None and not isinstance(raised, asyncio.CancelledError):
            raise raised from None
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from None
        raise
