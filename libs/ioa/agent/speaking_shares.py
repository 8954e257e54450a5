"""In which order what an agent says for several users goes out, while routers take no more of it.

Routers count what an agent says in all its groups together (`ioa.quotas`). A user may have it speak as fast as it can, for hours,
by a team that needs no thought, and several users may: what others ask of it would wait behind that, and the doctor would name the
agent. So while an agent speaks in goals of several users it says no more than routers take, in turns, a message of each; and what
is said for a user who has said little comes before that of those who have said much.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from heapq import heappop, heappush
from itertools import count

from ioa.protocol.ids import UserId
from ioa.quotas import RATES, Family, Rate

_REMEMBERED_SECONDS = 60.0
"""For how long a user counts as one of several in whose goals nothing is said."""
_AHEAD = 10
"""So many messages may go out for a user before those of others who have had more said."""
_SHORT = 16
"""In so many turns a group's messages go out before others: few goals have more, and who has an agent speak without end has."""
_PART = 0.9
"""Which part of what routers take is said, with reports (`ReportShares`): they count a message that was sent twice, too."""


class SpeakingShares:
    """Has messages wait for their turn. One user alone has all that the agent may say, as fast as routers take it.

    The order is that of fair queueing (S. J. Golestani, "Self-Clocked Fair Queueing", INFOCOM 1994): a message's tag is how much
    had been said for its user when it goes out, and the least goes first.

    Args:
        rate: What the agent may say.
    """

    def __init__(self, rate: Rate = RATES[Family.SAY]) -> None:
        self._rate = rate
        self._at_once = rate.burst / rate.per_second
        self._full_at = float("-inf")
        self._seen: OrderedDict[UserId, float] = OrderedDict()
        """When something was said last for each user; the latest stands last."""
        self._tags: dict[UserId, float] = {}
        self._said = 0.0
        """The tag of what went out last."""
        self._waiting: list[tuple[float, int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, user: UserId, size_bytes: int, turn: int) -> None:
        """Wait until a message in a goal of a user is to be said.

        Args:
            user: Whose goal it is.
            size_bytes: How long the message is.
            turn: In which turn of its group it is said.
        """
        loop, unit_bytes = asyncio.get_running_loop(), self._rate.unit_bytes
        counts, now = 1 if unit_bytes is None else 1 + size_bytes // unit_bytes, loop.time()
        self._see(user, now)
        if len(self._seen) == 1 and not self._waiting:
            self._full_at = min(self._after(counts, now), now + self._at_once)
            return
        tag = self._tags[user] = max(self._said - _AHEAD, self._tags.get(user, 0.0)) + counts
        is_next = loop.create_future()
        heappush(self._waiting, (tag - (_SHORT if turn <= _SHORT else 0), next(self._numbers), counts, is_next))
        self._say_next()
        await is_next

    def count_report(self) -> None:
        """Count a report, which has waited for its own turn: what is said comes so much later."""
        self._full_at = self._after(1, asyncio.get_running_loop().time())

    def _see(self, user: UserId, now: float) -> None:
        self._seen.pop(user, None)
        self._seen[user] = now
        while next(iter(self._seen.values())) < now - _REMEMBERED_SECONDS:
            gone, _ = self._seen.popitem(last=False)
            self._tags.pop(gone, None)

    def _after(self, counts: int, now: float) -> float:
        """Return when all may be said at once again that may be, once a message is."""
        return max(self._full_at, now) + counts / (_PART * self._rate.per_second)

    def _look_again(self) -> None:
        self._timer = None
        self._say_next()

    def _say_next(self) -> None:
        """Let go out what may now, and look again when more may."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            tag, _, counts, is_next = self._waiting[0]
            now = loop.time()
            if not is_next.done() and self._full_at > now and self._after(counts, now) > now + self._at_once:
                if self._timer is None:
                    self._timer = loop.call_at(self._after(counts, now) - self._at_once, self._look_again)
                return
            heappop(self._waiting)
            if not is_next.done():
                self._full_at, self._said = self._after(counts, now), max(self._said, tag)
                is_next.set_result(None)
