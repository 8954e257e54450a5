"""Turns at what costs much: few go on at a time, and of those who wait one user follows another."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

from ioa.errors import RateLimitedError
from ioa.protocol.ids import UserId


class _Waiting(NamedTuple):
    given: asyncio.Future[None]
    places: int


class UserTurns:
    """Hands out turns. How many of one user wait makes no turn of another come later.

    Args:
        at_once: How many places there are for what goes on at a time.
        of_user: How many of them may be one user's.
    """

    def __init__(self, at_once: int, of_user: int) -> None:
        self._free = at_once
        self._of_user = of_user
        self._going = Counter[UserId]()
        self._waiting: dict[UserId, deque[_Waiting]] = {}
        """Who had a turn last stands last."""

    @asynccontextmanager
    async def turn(self, user: UserId, within: timedelta | None = None, places: int = 1) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as the block.

        Args:
            user: Whose turn it is.
            within: How long it is waited for.
            places: How many it takes up, no more than one user may have.

        Raises:
            RateLimitedError: It does not come in time.
        """
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(_Waiting(given, places))
        self._give()
        try:
            try:
                async with asyncio.timeout(None if within is None else within.total_seconds()):
                    await given
            except TimeoutError:
                raise RateLimitedError("Too much of this kind is asked for at a time.", retry_after=timedelta(seconds=1)) from None
            yield
        finally:
            if given.done() and not given.cancelled():
                self._free += places
                self._going[user] -= places
                if not self._going[user]:
                    del self._going[user]
                if user in self._waiting:
                    self._waiting[user] = self._waiting.pop(user)
            given.cancel()  # whose turn has not come is passed over when it would
            self._give()

    def _give(self) -> None:
        while (user := next(filter(self._may_go_on, self._waiting), None)) is not None:
            waiting = self._waiting[user]
            given, places = waiting[0]
            if places > self._free and not given.done():
                return  # nobody overtakes who needs several: he would wait for ever
            waiting.popleft()
            del self._waiting[user]
            if waiting:
                self._waiting[user] = waiting
            if not given.done():
                self._free -= places
                self._going[user] += places
                given.set_result(None)

    def _may_go_on(self, user: UserId) -> bool:
        return self._going[user] + self._waiting[user][0].places <= self._of_user
