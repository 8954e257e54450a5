"""Who has filled what all share: the one rule by which somebody waits there while others find room.

What somebody has had stored is judged against what is left: so who fills a store is stopped while there is room for others, and
nobody is as long as there is enough. An amount for each would be met by who is honest and alone, or be too large to help.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import nsmallest

import structlog

from ioa.ports.inspection import SlowedCaller
from ioa.ports.store_room import StoreRoom
from ioa.quotas import SLOWED_FOR, Family
from ioa.runtime.caller_pace import tell_nobody

PART = 4
"""So many times what is left may be one's: alone he has four fifths, beside another as greedy four ninths."""
_LITTLE_BYTES, _LITTLE_PART = 4_000_000, 100
"""Who has no more has filled nothing, however little is left; or no more than one part of so many of the share, if that is less:
else some of them together fill a small one."""
_FORGOTTEN = 86_400.0
"""After so many seconds half of what somebody has had stored counts no more."""
_MOST_REMEMBERED, _FORGOTTEN_AT_ONCE = 16_384, 1_024
"""Those who have least are forgotten together: to find them takes milliseconds."""

_log = structlog.get_logger(__name__)


class StoredShares:
    """Counts what each has had stored in a part of the store, and remembers who was put off there.

    Args:
        now: Tells the time in seconds; it never goes back.
        family: Which part of the store it is, as the doctor is told.
        slowed: Is told of who is put off, once in a while.
        little_bytes: Who has had no more stored fills nothing, in however large a part.
        part: How many times what is left may be one's; 0 is nothing but that little.
    """

    def __init__(
        self,
        now: Callable[[], float],
        family: str,
        slowed: Callable[[str, Family], None] = tell_nobody,
        little_bytes: int = _LITTLE_BYTES,
        part: int = PART,
    ) -> None:
        self._now = now
        self._family = family
        self._slowed = slowed
        self._little_bytes = little_bytes
        self._part = part
        self._held: dict[str, tuple[float, float]] = {}
        """How many bytes each has had stored, as of when."""
        self._most = 0.0
        """The most that anybody has ever had; nobody has more."""
        self._told: dict[str, tuple[float, float]] = {}
        """When somebody was told last that others need the room, and what he had."""

    def note(self, who: str, size_bytes: int) -> None:
        """Charge somebody with what was stored for him."""
        now = self._now()
        if len(self._held) >= _MOST_REMEMBERED and who not in self._held:
            for least in nsmallest(_FORGOTTEN_AT_ONCE, self._held, key=self.held):
                del self._held[least]
        held, at = self._held.get(who, (0.0, now))
        held = _left_of(held, now - at) + size_bytes
        self._held[who] = (held, now)
        self._most = max(self._most, held)

    def held(self, who: str) -> float:
        """Return how many bytes somebody has had stored, the older the less."""
        held, at = self._held.get(who, (0.0, 0.0))
        return _left_of(held, self._now() - at)

    def may_put_off(self, room: StoreRoom) -> bool:
        """Whether anybody may have had so much stored: as long as there is much room, nobody need be looked at."""
        return self.is_over(self._most, room)

    def is_over(self, held_bytes: float, room: StoreRoom, part: int | None = None) -> bool:
        """Whether so much is more than one may have of a part of the store with so much room."""
        little = min(self._little_bytes, room.share_bytes // _LITTLE_PART)
        return held_bytes > max(little, (self._part if part is None else part) * room.free_bytes)

    def puts_off(self, who: str, room: StoreRoom | None, held_bytes: float | None = None) -> bool:
        """Whether somebody has had so much stored that others need what is left; he is named then. None is room for all.

        Args:
            who: Whose doing it is.
            room: What is left.
            held_bytes: How much of it is his, if that is known better than from what was noted here.
        """
        if room is None:
            return False
        held = self.held(who) if held_bytes is None else held_bytes
        if not self.is_over(held, room):
            return False
        if who not in self._told:
            _log.warning("store_filled", who=who, part=self._family, stored_bytes=round(held))
            self._slowed(who, Family.LOGS)
        self._told.pop(who, None)
        self._told[who] = (self._now(), held)
        while len(self._told) > _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        return True

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return who was put off lately, with how many MB."""
        now = self._now()
        self._told = {who: told for who, told in self._told.items() if now - told[0] <= SLOWED_FOR}
        return [SlowedCaller(who, self._family, round(held / 1e6)) for who, (_, held) in self._told.items()]


def _left_of(held_bytes: float, seconds: float) -> float:
    return held_bytes * math.exp2(-seconds / _FORGOTTEN)
