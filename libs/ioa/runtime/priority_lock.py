"""A lock with a short way for what is urgent: a deadline must not stand in line behind a thousand messages."""

from __future__ import annotations

import asyncio
from types import TracebackType


class PriorityLock:
    """A lock for the tasks of one event loop. Urgent waiters come first; among equals, who came first.

    It is handed over, never left open while somebody waits, so that nobody who comes later can slip in.
    """

    def __init__(self) -> None:
        self._locked = False
        # Lists, since there is a lock for each of ten thousand groups, and an empty deque takes 0.6 kB.
        self._urgent: list[asyncio.Future[None]] = []
        self._others: list[asyncio.Future[None]] = []

    def locked(self) -> bool:
        """Whether somebody holds the lock."""
        return self._locked

    def held(self, *, urgent: bool = False) -> _Holding:
        """Hold the lock for an `async with` block."""
        return _Holding(self, urgent=urgent)

    async def acquire(self, *, urgent: bool = False) -> None:
        """Wait for the lock. Who is cancelled meanwhile does not hold it, and passes on what was handed to it at that moment."""
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
        """Hand the lock to the next one who still waits."""
        for waiting in (self._urgent, self._others):
            while waiting:
                turn = waiting.pop(0)
                if not turn.done():
                    turn.set_result(None)
                    return
        self._locked = False


class _Holding:
    """One `async with` block. A class, since a generator would cost every message some microseconds."""

    def __init__(self, lock: PriorityLock, *, urgent: bool) -> None:
        self._lock = lock
        self._is_urgent = urgent

    async def __aenter__(self) -> None:
        await self._lock.acquire(urgent=self._is_urgent)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()
