"""Catching up with many groups at once: those of which least was read go first, and all have their turn.

An agent that starts anew, or without its memory, asks for the logs of all its groups. Group setup tells one agent so much a
second, whoever has spoken in its groups: behind somebody's logs of hundreds of megabytes everybody else's would come minutes late.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from ioa.errors import RateLimitedError

_AT_ONCE = 2
"""How many pages are asked for at a time: group setup reads no more for one agent."""
_COME_BACK = timedelta(seconds=1)

T = TypeVar("T")


class CatchingUp:
    """Has an agent's groups ask for pages of their logs in turns.

    A turn's tag is how many pages had gone when it was asked for, and how many of its group; the least goes first, so that whoever
    waits is overtaken by so many at the most (S. J. Golestani, "Self-Clocked Fair Queueing", INFOCOM 1994): groups of which nothing
    was read come without end, since who hears nothing of a group asks whether there is anything.
    """

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._free = at_once
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._last = 0
        """The tag of what went last."""

    async def ask(self, pages: int, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask for a page of a log of which so many were read. If the agent has asked too often, it is asked for later."""
        async with self._turn(pages):
            while True:
                try:
                    return await ask()
                except RateLimitedError as error:
                    pause = error.retry_after or _COME_BACK
                await asyncio.sleep(pause.total_seconds())

    @asynccontextmanager
    async def _turn(self, pages: int) -> AsyncIterator[None]:
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (self._last + 1 + pages, next(self._numbers), given))
        self._give()
        try:
            await given
            yield
        finally:
            if given.done() and not given.cancelled():
                self._free += 1
            given.cancel()
            self._give()

    def _give(self) -> None:
        while self._free and self._waiting:
            tag, _, given = heappop(self._waiting)
            if not given.done():
                self._free, self._last = self._free - 1, max(self._last, tag)
                given.set_result(None)
