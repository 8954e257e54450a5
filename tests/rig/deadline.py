"""Waiting for a condition, never longer than a deadline."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

T = TypeVar("T")

_LOOK_EVERY_SECONDS = 0.01


@overload
async def eventually(look: Callable[[], Awaitable[T]], until: Callable[[T], bool] = ..., *, within: timedelta = ...) -> T: ...
@overload
async def eventually(look: Callable[[], T], until: Callable[[T], bool] = ..., *, within: timedelta = ...) -> T: ...
async def eventually(
    look: Callable[[], Any], until: Callable[[Any], bool] = bool, *, within: timedelta = timedelta(seconds=15)
) -> Any:
    """Look again and again until what is seen satisfies `until`, and return it.

    Raises:
        AssertionError: It did not within the deadline; the message shows what was seen last.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within.total_seconds()
    while True:
        found = look()
        seen = await found if inspect.isawaitable(found) else found
        if until(seen):
            return seen
        if loop.time() > deadline:
            raise AssertionError(f"not within {within.total_seconds():g} s; seen last: {seen!r}")
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
