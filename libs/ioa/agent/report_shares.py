"""In which order reports go out by which an agent keeps what it has: the leases of its tasks, and the floor while it thinks.

Routers count them with what the agent says (`ioa.quotas`). Each task has to be reported on as long as it is open, also while it
waits for a slot, and one user may give an agent more of them than routers take reports: sent when they are due, these had routers
refuse whatever the agent said, in goals of others as well, and at last close it out. So reports take half of what routers take.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from heapq import heappop, heappush
from itertools import count

from ioa.agent.speaking_shares import SpeakingShares
from ioa.protocol.ids import UserId
from ioa.quotas import RATES, Family, Rate

_PART = 0.5
"""Which part of what routers take may be reports."""


class ReportShares:
    """Has reports wait for their turn. Users take turns, and of each that report goes first whose lease ends first.

    So what cannot be kept is of whoever has most; and a task that has failed for that waits no more, which makes room.

    Args:
        shares: What else the agent says, which leaves room for reports.
        rate: What the agent may say, reports included.
    """

    def __init__(self, shares: SpeakingShares, rate: Rate = RATES[Family.SAY]) -> None:
        self._shares = shares
        self._each = 1 / (_PART * rate.per_second)
        self._at_once = rate.burst / rate.per_second
        self._full_at = float("-inf")
        self._waiting: OrderedDict[UserId, list[tuple[float, int, asyncio.Future[None]]]] = OrderedDict()
        """What waits, by user. Who had a turn last stands last."""
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, user: UserId, until: float) -> None:
        """Wait until a report in a goal of a user is to be sent.

        Args:
            user: Whose goal it is.
            until: When that runs out which it keeps, by the clock of the loop.
        """
        is_next = asyncio.get_running_loop().create_future()
        heappush(self._waiting.setdefault(user, []), (until, next(self._numbers), is_next))
        self._send_next()
        await is_next

    def _look_again(self) -> None:
        self._timer = None
        self._send_next()

    def _send_next(self) -> None:
        """Let go out what may now, and look again when more may."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            user, reports = next(iter(self._waiting.items()))
            *_, is_next = reports[0]
            now = loop.time()
            full_at = max(self._full_at, now) + self._each
            if not is_next.done() and self._full_at > now and full_at > now + self._at_once:
                if self._timer is None:
                    self._timer = loop.call_at(full_at - self._at_once, self._look_again)
                return
            heappop(reports)
            if not is_next.done():
                self._full_at = full_at
                self._shares.count_report()
                is_next.set_result(None)
                self._waiting.move_to_end(user)
            if not reports:
                del self._waiting[user]
