"""How much of what an agent may say goes into the goals of one user: half, once it speaks in those of several.

Routers count what an agent says in all its groups together (`ioa.quotas`). A user may have it speak as fast as it can, for hours,
by a team that needs no thought: what others ask of it would wait behind that, and the doctor would name the agent.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from ioa.protocol.ids import UserId
from ioa.quotas import RATES, Family, Rate

_PART = 2
_MOST_REMEMBERED = 1_000


class SpeakingShares:
    """Has what is said in the goals of each user wait for that user's share. One that is alone has all of it.

    Args:
        rate: What the agent may say.
    """

    def __init__(self, rate: Rate = RATES[Family.SAY]) -> None:
        self._rate = rate
        self._full_at: OrderedDict[UserId, float] = OrderedDict()
        """When each user's share is full again, by the loop's clock; who has had something said last stands last."""

    async def take(self, user: UserId, size_bytes: int) -> None:
        """Wait until a message of so many bytes may be said in a goal of a user, and count it."""
        now, rate = asyncio.get_running_loop().time(), self._rate
        counts = 1 if rate.unit_bytes is None else 1 + size_bytes // rate.unit_bytes
        at_once = rate.burst / rate.per_second
        full_at = max(self._full_at.pop(user, now), now) + _PART * counts / rate.per_second
        is_alone = not self._full_at
        self._full_at[user] = min(full_at, now + at_once) if is_alone else full_at
        if len(self._full_at) > _MOST_REMEMBERED:
            self._full_at.popitem(last=False)
        if not is_alone:
            await asyncio.sleep(max(0.0, full_at - now - at_once))
