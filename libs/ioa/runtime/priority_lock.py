"""A lock with priority: a deadline precedes the messages that wait for the same group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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

    @asynccontextmanager
    async def held(self, *, urgent: bool = False) -> AsyncIterator[None]:
        """Hold the lock for a block. A task that is cancelled while it waits does not hold the lock."""
        if self._is_locked:
            turn = asyncio.get_running_loop().create_future()
            (self._urgent if urgent else self._others).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._release()
                raise
        self._is_locked = True
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        """Pass the lock to the next waiter, or unlock it."""
        for waiting in (self._urgent, self._others):
            while waiting:
                turn = waiting.pop(0)
                if not turn.done():
                    turn.set_result(None)
                    return
        self._is_locked = False
