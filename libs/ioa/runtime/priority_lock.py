"""A lock with priority: a deadline precedes the messages that wait for the same group."""

from __future__ import annotations

import asyncio
from types import TracebackType


class PriorityLock:
    """A lock for the tasks of one event loop. Urgent waiters precede others; equal waiters are served in order.

    A release passes the lock to the next waiter directly, so that a later task cannot acquire it first.
    """

    def __init__(self) -> None:
        self._is_locked = False
        # Lists, because each of thousands of groups has a lock, and an empty deque takes 0.6 kB.
        self._urgent: list[asyncio.Future[None]] = []
        self._others: list[asyncio.Future[None]] = []

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._is_locked

    def held(self, *, urgent: bool = False) -> _Held:
        """Return a context manager that holds the lock for its block. A task cancelled while it waits does not hold the lock."""
        return _Held(self, urgent)

    async def acquire(self, *, urgent: bool) -> None:
        """Wait for the lock; `release` must follow."""
        if self._is_locked:
            turn = asyncio.get_running_loop().create_future()
            (self._urgent if urgent else self._others).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self.release()
                raise
        self._is_locked = True

    def release(self) -> None:
        """Pass the lock to the next waiter, or unlock it."""
        for waiting in (self._urgent, self._others):
            while waiting:
                turn = waiting.pop(0)
                if not turn.done():
                    turn.set_result(None)
                    return
        self._is_locked = False


class _Held:
    """Holds a lock for a block. A generator-based context manager takes three times as long."""

    __slots__ = ("_lock", "_urgent")

    def __init__(self, lock: PriorityLock, urgent: bool) -> None:
        self._lock = lock
        self._urgent = urgent

    async def __aenter__(self) -> None:
        await self._lock.acquire(urgent=self._urgent)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()
