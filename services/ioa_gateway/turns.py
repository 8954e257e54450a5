"""Turns at what costs much: few go on at a time, and of those who wait one user follows another."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from ioa.errors import RateLimitedError
from ioa.protocol.ids import UserId


class UserTurns:
    """Hands out turns. How many of one user wait makes no turn of another come later.

    Args:
        at_once: How many go on at a time.
        of_user: How many of them may be of one user.
    """

    def __init__(self, at_once: int, of_user: int) -> None:
        self._free = at_once
        self._of_user = of_user
        self._going = Counter[UserId]()
        self._waiting: dict[UserId, deque[asyncio.Future[None]]] = {}
        """Who had a turn last stands last."""

    @asynccontextmanager
    async def turn(self, user: UserId, within: timedelta | None = None) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as the block.

        Raises:
            RateLimitedError: It does not come in time.
        """
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(given)
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
                self._free += 1
                self._going[user] -= 1
                if not self._going[user]:
                    del self._going[user]
                if user in self._waiting:
                    self._waiting[user] = self._waiting.pop(user)
            given.cancel()  # whose turn has not come is passed over when it would
            self._give()

    def _give(self) -> None:
        while self._free and (user := next((one for one in self._waiting if self._going[one] < self._of_user), None)) is not None:
            waiting = self._waiting.pop(user)
            given = waiting.popleft()
            if waiting:
                self._waiting[user] = waiting
            if not given.done():
                self._free -= 1
                self._going[user] += 1
                given.set_result(None)
