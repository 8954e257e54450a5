"""Turns at what costs much: few go on at a time, and of those who wait one caller follows another."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

from ioa.cancellation import fail_after
from ioa.errors import RateLimitedError


class _Waiting(NamedTuple):
    given: asyncio.Future[None]
    places: int


class FairTurns:
    """Hands out turns. How many of one caller wait makes no turn of another come later.

    Args:
        at_once: How many places there are for what goes on at a time.
        of_one: How many of them may be one caller's.
    """

    def __init__(self, at_once: int, of_one: int) -> None:
        self._free = at_once
        self._of_one = of_one
        self._going = Counter[str]()
        self._waiting: dict[str, deque[_Waiting]] = {}
        """Who had a turn last stands last."""

    @asynccontextmanager
    async def turn(self, who: str, within: timedelta | None = None, places: int = 1) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as the block.

        Args:
            who: Whose turn it is.
            within: How long it is waited for.
            places: How many it takes up, no more than one caller may have.

        Raises:
            RateLimitedError: It does not come in time.
        """
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(_Waiting(given, places))
        self._give()
        try:
            try:
                async with fail_after(None if within is None else within.total_seconds()):
                    await given
            except TimeoutError:
                raise RateLimitedError("Too much of this kind is asked for at a time.", retry_after=timedelta(seconds=1)) from None
            yield
        finally:
            if given.done() and not given.cancelled():
                self._free += places
                self._going[who] -= places
                if not self._going[who]:
                    del self._going[who]
                if who in self._waiting:
                    self._waiting[who] = self._waiting.pop(who)
            given.cancel()  # whose turn has not come is passed over when it would
            self._give()

    def _give(self) -> None:
        while (who := next(filter(self._may_go_on, self._waiting), None)) is not None:
            waiting = self._waiting[who]
            given, places = waiting[0]
            if places > self._free and not given.done():
                return  # nobody overtakes who needs several: he would wait for ever
            waiting.popleft()
            del self._waiting[who]
            if waiting:
                self._waiting[who] = waiting
            if not given.done():
                self._free -= places
                self._going[who] += places
                given.set_result(None)

    def _may_go_on(self, who: str) -> bool:
        return self._going[who] + self._waiting[who][0].places <= self._of_one
