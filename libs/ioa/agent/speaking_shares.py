"""How much of what an agent may say goes into the goals of one user: half, once it speaks in those of several.

Routers count what an agent says in all its groups together (`ioa.quotas`). A user may have it speak as fast as it can, for hours,
by a team that needs no thought: what others ask of it would wait behind that, and the doctor would name the agent.
"""

from __future__ import annotations

from collections import OrderedDict

from ioa.protocol.ids import UserId
from ioa.quotas import RATES, Family, Rate

_PART = 2
_REMEMBERED_SECONDS = 60.0
"""For how long something is left for a user in whose goals nothing is said."""


class SpeakingShares:
    """Says how long what is said in the goals of each user has to wait for that user's share. One that is alone has all of it.

    Args:
        rate: What the agent may say.
    """

    def __init__(self, rate: Rate = RATES[Family.SAY]) -> None:
        self._rate = rate
        self._full_at: OrderedDict[UserId, float] = OrderedDict()
        """When each user's share is full again; who has had something said last stands last."""

    def take(self, user: UserId, size_bytes: int, now: float) -> float:
        """Count a message in a goal of a user.

        Args:
            user: Whose goal it is.
            size_bytes: How long the message is.
            now: In seconds, of one clock that never goes back.

        Returns:
            How many seconds it has to wait.
        """
        rate = self._rate
        counts = 1 if rate.unit_bytes is None else 1 + size_bytes // rate.unit_bytes
        at_once = rate.burst / rate.per_second
        full_at = max(self._full_at.pop(user, now), now) + _PART * counts / rate.per_second
        while self._full_at and next(iter(self._full_at.values())) < now - _REMEMBERED_SECONDS:
            self._full_at.popitem(last=False)
        if not self._full_at:
            self._full_at[user] = min(full_at, now + at_once)
            return 0.0
        self._full_at[user] = full_at
        return max(0.0, full_at - now - at_once)
