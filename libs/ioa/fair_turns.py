"""Turns at what costs much: few go on at a time, and of those who wait one caller follows another."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import NamedTuple

from ioa.cancellation import fail_after
from ioa.errors import RateLimitedError


class _Waiting(NamedTuple):
    given: asyncio.Future[str]
    places: int


class Sharers:
    """Those who wait for the same, as they come and go: it has the turn of whoever's comes first.

    So nobody waits for it behind what another one of them has begun besides, nor behind more than for what is his alone.
    """

    def __init__(self, *those: str) -> None:
        self._those = Counter(those)
        self._waiting = set[Callable[[str], None]]()

    @contextmanager
    def joined(self, who: str) -> Iterator[None]:
        """Have somebody be one of them for as long as the block."""
        self._those[who] += 1
        if self._those[who] == 1:
            for wait in (*self._waiting,):
                wait(who)
        try:
            yield
        finally:
            self._those[who] -= 1
            if not self._those[who]:
                del self._those[who]

    @contextmanager
    def waiting(self, wait: Callable[[str], None]) -> Iterator[None]:
        """Wait among what each of them waits for, and who comes within the block."""
        self._waiting.add(wait)
        try:
            for who in (*self._those,):
                wait(who)
            yield
        finally:
            self._waiting.remove(wait)


class FairTurns:
    """Hands out turns. How many of one caller wait makes no turn of another come later.

    Args:
        at_once: How many places there are for what goes on at a time.
        of_one: How many of them may be one caller's.
    """

    def __init__(self, at_once: int, of_one: int) -> None:
        self._free = at_once
        self._of_one = of_one
        self._going = Counter[str]()
        self._waiting: dict[str, deque[_Waiting]] = {}
        """Who had a turn last stands last."""

    @asynccontextmanager
    async def turn(self, who: str | Sharers, within: timedelta | None = None, places: int = 1) -> AsyncIterator[None]:
        """Wait for a turn, and have it for as long as the block.

        Args:
            who: Whose turn it is, or of whom one has it.
            within: How long it is waited for.
            places: How many it takes up, no more than one caller may have.

        Raises:
            RateLimitedError: It does not come in time.
        """
        given: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        sharers = who if isinstance(who, Sharers) else Sharers(who)

        def wait(one: str) -> None:
            if not given.done():
                self._waiting.setdefault(one, deque()).append(_Waiting(given, places))
                self._give()

        try:
            try:
                async with fail_after(None if within is None else within.total_seconds()):
                    with sharers.waiting(wait):
                        await given
            except TimeoutError:
                raise RateLimitedError("Too much of this kind is asked for at a time.", retry_after=timedelta(seconds=1)) from None
            yield
        finally:
            if given.done() and not given.cancelled():
                self._free += places
                had = given.result()
                self._going[had] -= places
                if not self._going[had]:
                    del self._going[had]
                if had in self._waiting:
                    self._waiting[had] = self._waiting.pop(had)
            given.cancel()  # whose turn has not come is passed over when it would
            self._give()

    def wanted(self) -> int:
        """How many of those who wait might go on if there were places for all; none, while there are any."""
        if self._free:
            return 0
        able = {who: self._of_one - self._going[who] for who in self._waiting}
        return sum(min(able[who], sum(not one.given.done() for one in waiting)) for who, waiting in self._waiting.items())

    def _give(self) -> None:
        while (who := next(filter(self._may_go_on, self._waiting), None)) is not None:
            waiting = self._waiting[who]
            given, places = waiting[0]
            if places > self._free and not given.done():
                return  # nobody overtakes who needs several: he would wait for ever
            waiting.popleft()
            if not given.done():
                self._free -= places
                self._going[who] += places
                given.set_result(who)
                self._waiting[who] = self._waiting.pop(who)
            if not waiting:
                del self._waiting[who]

    def _may_go_on(self, who: str) -> bool:
        given, places = self._waiting[who][0]  # given up, or had in another's turn: that takes none of this one's
        return given.done() or self._going[who] + places <= self._of_one
