"""Waiting for a condition, never longer than a deadline."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")

_LOOK_EVERY_SECONDS = 0.01


async def eventually(
    look: Callable[[], T | Awaitable[T]],
    until: Callable[[T], bool] = bool,
    *,
    within: timedelta = timedelta(seconds=15),
) -> T:
    """Look again and again until what is seen satisfies `until`, and return it.

    Raises:
        AssertionError: It did not within the deadline; the message shows what was seen last.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within.total_seconds()
    while True:
        found = look()
        seen: T = await found if inspect.isawaitable(found) else found
        if until(seen):
            return seen
        if loop.time() > deadline:
            raise AssertionError(f"not within {within.total_seconds():g} s; seen last: {seen!r}")
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
