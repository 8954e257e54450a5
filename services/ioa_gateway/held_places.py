"""Places for what is held until a client has taken it, who may take it slowly: too slowly is while others wait for a place.

Then his connection is closed, since what was written to it lies in memory until he reads it; he asks again, and goes on.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta

import structlog

from ioa.errors import RateLimitedError, UnavailableError
from ioa.fair_semaphore import FairSemaphore

LONGEST = timedelta(seconds=5)
"""How long a place is had at least, while others wait for one."""
_LOOK = timedelta(seconds=1)

closes_connection: ContextVar[Callable[[], object]] = ContextVar("closes_connection", default=lambda: None)
"""Closes the connection of the request that is answered, at once."""

_log = structlog.get_logger(__name__)


@contextmanager
def closed_by(close: Callable[[], object]) -> Iterator[None]:
    """Say how the connection of a request is closed, for as long as the block: tasks that it has begun may outlive it."""
    ways = [close]
    closes_connection.set(lambda: [way() for way in ways])
    try:
        yield
    finally:
        ways.clear()


@dataclass(eq=False)
class HeldPlace:
    """A place that somebody has.

    Attributes:
        user: Whose it is.
        close: Closes his connection.
        since: When he was handed the first of what he holds; what is read for him until then is not his time.
        is_lost: Whether his connection was closed.
        look: When it is looked next whether he has to lose it.
    """

    user: str
    close: Callable[[], object]
    since: float = math.inf
    is_lost: bool = False
    look: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Take it that what is held is handed out from now on."""
        self.since = asyncio.get_running_loop().time()

    def check(self) -> None:
        """See that it is his still.

        Raises:
            UnavailableError: He has taken too slowly what he holds.
        """
        if self.is_lost:
            raise UnavailableError("This was read too slowly while others waited for theirs.", hint="Ask for it again.")


class HeldPlaces:
    """Hands out places, to users in turn. Of those that were had for long, while others wait, users with most lose one first.

    Args:
        at_once: How many there are.
        of_one: How many of them may be one user's.
    """

    def __init__(self, at_once: int, of_one: int) -> None:
        self._slots = FairSemaphore(at_once, of_one)
        self._at_once, self._of_one = at_once, of_one
        self._held = list[HeldPlace]()
        self.waiting = Counter[str]()
        """Requests of each user that wait for a place."""

    @property
    def taken(self) -> int:
        """How many are taken."""
        return len(self._held)

    @asynccontextmanager
    async def place(self, user: str, within: timedelta) -> AsyncIterator[HeldPlace | None]:
        """Have a place for as long as the block; None if it does not come in time."""
        async with AsyncExitStack() as stack:
            self.waiting[user] += 1
            try:
                await stack.enter_async_context(self._slots.slot(user, within))
                is_granted = True
            except RateLimitedError:
                is_granted = False
            finally:
                self.waiting[user] -= 1
            yield self._begin(user, stack) if is_granted else None

    def _begin(self, user: str, stack: AsyncExitStack) -> HeldPlace:
        held = HeldPlace(user, closes_connection.get())
        self._held.append(held)
        stack.callback(self._end, held)
        self._look_in(LONGEST, held)
        return held

    def _end(self, held: HeldPlace) -> None:
        self._held.remove(held)
        if held.look is not None:
            held.look.cancel()

    def _look_in(self, after: timedelta, held: HeldPlace) -> None:
        """Look now and then whether somebody has to lose a place, for as long as one is had."""
        self._make_room()
        held.look = asyncio.get_running_loop().call_later(after.total_seconds(), self._look_in, _LOOK, held)

    def _make_room(self) -> None:
        """Close the slowest connection that holds a place, if all places are taken and more requests wait than places get free."""
        now, has = asyncio.get_running_loop().time(), Counter(one.user for one in self._held)
        wanted = sum(min(self._of_one - has[user], count) for user, count in self.waiting.items())
        if len(self._held) < self._at_once or wanted <= sum(one.is_lost for one in self._held):
            return
        longest = LONGEST.total_seconds()
        overdue = [one for one in self._held if not one.is_lost and now - one.since >= longest]
        if overdue:
            slowest = max(overdue, key=lambda one: (has[one.user], now - one.since))
            slowest.is_lost = True
            _log.warning("read_too_slowly", user=slowest.user, seconds=round(now - slowest.since))
            slowest.close()
