"""How many cards the index holds, for whoever asks, which anybody may: counting takes an engine long where there are many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

KEPT_SECONDS = 1.0


class IndexCount:
    """A count that is kept for a second.

    Args:
        count: Counts.
        now: Returns seconds that never go back.
    """

    def __init__(self, count: Callable[[], Awaitable[int]], now: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._now = now
        self._counting = asyncio.Lock()
        self._counted: int = 0
        self._kept_until = float("-inf")

    async def read(self) -> int:
        """Return how many there are, or were a second ago.

        Raises:
            UnavailableError: The index is away.
        """
        async with self._counting:
            if self._now() >= self._kept_until:
                self._counted = await self._count()
                self._kept_until = self._now() + KEPT_SECONDS
            return self._counted
