"""At most a share of a process's event loop for reading what comes over one connection.

What somebody sends is read in one piece, and the loop does nothing else meanwhile. A message that is small enough to travel may
take a quarter of a second to read. Who may send many of them would have the loop to himself, and with it all others for whom the
process works.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")

OF_OTHERS = 0.25
"""The share of all tenants together for which a process works besides its own."""
_AT_ONCE = timedelta(milliseconds=100)
"""How long may be read without a pause by who has not read lately, so that nobody waits who has little to read."""


class LoopShare:
    """Has what is read one after the other, in the order in which it is asked for, with pauses where it takes more than its share.

    Args:
        part: The share of the loop's time, above 0 and at most 1.
        now: Tells seconds.
    """

    def __init__(self, part: float, *, now: Callable[[], float] = time.perf_counter) -> None:
        self._part = part
        self._now = now
        self._turn = asyncio.Lock()
        self._paid_until = now()
        """When what was read so far has taken no more than its share."""

    async def read(self, read: Callable[[], T]) -> T:
        """Return what `read` does, as soon as there is time for it."""
        async with self._turn:
            pause = self._paid_until - _AT_ONCE.total_seconds() - self._now()
            if pause > 0:
                await asyncio.sleep(pause)
            started = self._now()
            try:
                return read()
            finally:
                self._paid_until = max(self._paid_until, started) + (self._now() - started) / self._part


async def read_in(share: LoopShare | None, read: Callable[[], T]) -> T:
    """Return what `read` does, in a share of the loop's time, or at once where there is no bound."""
    return read() if share is None else await share.read(read)
