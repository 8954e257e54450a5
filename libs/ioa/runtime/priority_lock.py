"""A lock with priority: a deadline precedes the messages that wait for the same group."""

from __future__ import annotations

import asyncio
from types import TracebackType


class PriorityLock:
    """A lock for the tasks of one event loop. Urgent waiters precede others; equal waiters are served in order.

    A release passes the lock to the next waiter directly, so that a later task cannot acquire it first.
    """

    def __init__(self) -> None:
        self._locked = False
        # Lists, because each of ten thousand groups has a lock, and an empty deque takes 0.6 kB.
        self._urgent: list[asyncio.Future[None]] = []
        self._others: list[asyncio.Future[None]] = []

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._locked

    def held(self, *, urgent: bool = False) -> _Holding:
        """Hold the lock for an `async with` block."""
        return _Holding(self, urgent=urgent)

    async def acquire(self, *, urgent: bool = False) -> None:
        """Wait for the lock. A task that is cancelled while it waits does not hold the lock."""
        if not self._locked:
            self._locked = True
            return
        turn = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._others).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Pass the lock to the next waiter, or unlock it."""
        for waiting in (self._urgent, self._others):
            while waiting:
                turn = waiting.pop(0)
                if not turn.done():
                    turn.set_result(None)
                    return
        self._locked = False


class _Holding:
    """One `async with` block. A class, because a generator would cost every message some microseconds."""

    def __init__(self, lock: PriorityLock, *, urgent: bool) -> None:
        self._lock = lock
        self._is_urgent = urgent

    async def __aenter__(self) -> None:
        await self._lock.acquire(urgent=self._is_urgent)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()
