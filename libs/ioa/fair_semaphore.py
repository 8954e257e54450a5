"""Bounded concurrency that serves waiting keys round-robin."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from ioa.errors import RateLimitedError

_RETRY_AFTER = timedelta(seconds=1)
"""Retry time of a request for which no place in the queue is free."""


class FairSemaphore:
    """Limit how many operations run at once, and serve waiting keys round-robin.

    A key is a caller, or whatever must not starve the others. Many waiting operations of one key never delay another key by more
    than one operation for each key that waits.

    Args:
        limit: Operations that run at once.
        per_key: Operations of one key that run at once; None: `limit`.
        max_waiting: Operations of one key that may wait; None: any number.
    """

    def __init__(self, limit: int, per_key: int | None = None, max_waiting: int | None = None) -> None:
        self._free = limit
        self._per_key = limit if per_key is None else per_key
        self._max_waiting = max_waiting
        self._running = Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Waiting operations of each key, in the order in which the keys are served."""

    def try_acquire(self, key: str) -> bool:
        """Take a slot without waiting if one is free and no operation of the key waits; return whether it was taken."""
        if not self._free or key in self._waiting or self._running[key] >= self._per_key:
            return False
        self._free -= 1
        self._running[key] += 1
        return True

    async def acquire(self, key: str) -> None:
        """Wait for a slot.

        Raises:
            RateLimitedError: `max_waiting` operations of the key wait already.
        """
        if self.try_acquire(key):
            return
        queue = self._waiting.setdefault(key, deque())
        if self._max_waiting is not None and len(queue) >= self._max_waiting:
            raise RateLimitedError(f"{len(queue)} requests of this caller wait already.", retry_after=_RETRY_AFTER)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release(key)
            elif granted in queue:  # otherwise `_grant` has skipped it
                queue.remove(granted)
                if not queue:
                    del self._waiting[key]
            raise

    def release(self, key: str) -> None:
        """Return a slot, and grant it to the next key that waits."""
        self._free += 1
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._grant()

    @asynccontextmanager
    async def slot(self, key: str) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        Raises:
            RateLimitedError: `max_waiting` operations of the key wait already.
        """
        await self.acquire(key)
        try:
            yield
        finally:
            self.release(key)

    def _grant(self) -> None:
        while self._free and (key := next((key for key in self._waiting if self._running[key] < self._per_key), None)) is not None:
            queue = self._waiting.pop(key)
            granted = queue.popleft()
            if queue:
                self._waiting[key] = queue  # last in the order: the other keys are served first
            if not granted.done():
                self._free -= 1
                self._running[key] += 1
                granted.set_result(None)
