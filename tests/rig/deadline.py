"""Waiting for a condition, never longer than a deadline."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

T = TypeVar("T")

_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.01, 0.1
_PAUSE_PER_SECOND_WAITED = 0.1


@overload
async def eventually(look: Callable[[], Awaitable[T]], until: Callable[[T], bool] = ..., *, within: timedelta = ...) -> T: ...
@overload
async def eventually(look: Callable[[], T], until: Callable[[T], bool] = ..., *, within: timedelta = ...) -> T: ...
async def eventually(
    look: Callable[[], Any], until: Callable[[Any], bool] = bool, *, within: timedelta = timedelta(seconds=15)
) -> Any:
    """Look again and again until what is seen satisfies `until`, and return it.

    The longer it takes, the longer the pauses: looking takes time from those that are waited for.

    Raises:
        AssertionError: It did not within the deadline; the message shows what was seen last.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    while True:
        found = look()
        seen = await found if inspect.isawaitable(found) else found
        if until(seen):
            return seen
        waited = loop.time() - start
        if waited > within.total_seconds():
            raise AssertionError(f"not within {within.total_seconds():g} s; seen last: {seen!r}")
        await asyncio.sleep(min(max(waited * _PAUSE_PER_SECOND_WAITED, _SHORTEST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS))
