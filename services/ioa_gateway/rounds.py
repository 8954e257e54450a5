"""Which requests are begun, and who is told news, in a round of the event loop: few, so that what others do goes on between them.

Whoever floods has thousands of requests ready at any time. Where all of them are begun at once, each step of another one's request
waits for all of them. To begin is nearly all that it costs to refuse one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

AT_ONCE = 8
"""How many requests of those who have shown a key, and how many of all others, are begun in a round."""


class Lane(NamedTuple):
    """Who waits, one after another.

    Attributes:
        is_known: Whether it is a user, by a key that lets him in; else it is whoever comes from an address.
        name: Of the user, or the address.
    """

    is_known: bool
    name: str


class Rounds:
    """Begins requests by turns: one lane follows another, however many requests of one wait."""

    def __init__(self) -> None:
        self._waiting = {is_known: dict[str, deque[asyncio.Future[bool]]]() for is_known in (True, False)}
        self._is_going = False

    def wait(self, lane: Lane) -> asyncio.Future[bool]:
        """Return what is True when a request may be begun; whoever gives up cancels it, or says False."""
        loop = asyncio.get_running_loop()
        begun: asyncio.Future[bool] = loop.create_future()
        self._waiting[lane.is_known].setdefault(lane.name, deque()).append(begun)
        if not self._is_going:
            self._is_going = True
            loop.call_soon(self._begin)
        return begun

    def _begin(self) -> None:
        for lanes in self._waiting.values():
            left = AT_ONCE
            while left and lanes:
                name = next(iter(lanes))
                waiting = lanes.pop(name)
                begun = waiting.popleft()
                if waiting:
                    lanes[name] = waiting
                if not begun.done():
                    begun.set_result(True)
                    left -= 1
        self._is_going = any(self._waiting.values())
        if self._is_going:
            asyncio.get_running_loop().call_soon(self._begin)
