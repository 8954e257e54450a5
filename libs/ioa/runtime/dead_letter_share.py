"""Each user's share of what is kept of refused messages: nobody's garbage pushes out what was refused to others.

The stream of dead letters drops the oldest when it is full, whosever it is. Its subjects name the reason and not the user, whom
older versions read it by, so that the server cannot count for each; group setup and gateways do before they write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import structlog
from prometheus_client import Counter

from ioa.errors import InvalidInputError, IoaError
from ioa.ports.delivery import DeadLetters, DeadReason
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.ids import LOCAL
from ioa.protocol.webhooks import Notice
from ioa.quotas import Admitted, Buckets, Family, Rate

KEPT = Rate(1 / 60, 1_000, unit_bytes=4_096)
"""How many of a user's are kept: 1,000 at once, a hundredth of the stream, and one a minute. Alone he fills it in ten weeks. One
counts once more for each 4 kB: a letter holds what was published, and a thousand of the largest would be a gigabyte."""

_PART, _FEWEST = 100, 10
"""One user has no more at once than one part of so many of a store, however small, and so many letters in any."""


def kept_in(store_bytes: int | None) -> Rate:
    """Return how many of a user's are kept in a store of so many bytes; in a large one, or without a bound, `KEPT`.

    In a small one fewer are, and fewer come after them, so that he takes as long to fill it.
    """
    unit = KEPT.unit_bytes or 1
    burst = KEPT.burst if store_bytes is None else min(KEPT.burst, max(_FEWEST, store_bytes // _PART // unit))
    return replace(KEPT, per_second=KEPT.per_second * burst / KEPT.burst, burst=burst)


WhoseLetter = Callable[[str, bytes], str]
"""Says by the subject and payload of a refused message whose it is; empty if it is nobody's."""

_log = structlog.get_logger(__name__)

not_kept = Counter("ioa_dead_letters_not_kept_total", "Refused messages that were not kept, since their user had too many")


class SharedDeadLetters:
    """Dead letters, of which each user may have so many; `now` tells seconds that never go back."""

    def __init__(self, dead: DeadLetters, user_of: WhoseLetter, now: Callable[[], float], kept: Rate = KEPT) -> None:
        self._dead = dead
        self._user_of = user_of
        self._now = now
        self._buckets = Buckets({Family.OTHERS: kept})

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a refused message, unless its user has had too many. Of one without a user, or nobody is asked who he is, all."""
        user = self._user_of(subject, data)
        if user in ("", LOCAL) or self._has_room(user, len(data)):
            await self._dead.put(reason, why, subject=subject, data=data, key=key)
            return
        not_kept.inc()
        _log.debug("dead_letter_not_kept", user=user, reason=reason)

    def _has_room(self, user: str, size_bytes: int) -> bool:
        return isinstance(self._buckets.judge(user, Family.OTHERS, self._now(), size_bytes), Admitted)


def user_of_goal(subject: str, _data: bytes) -> str:
    """Return who published a goal: its subject says it, and the server that he may."""
    try:
        return subjects.parse_goal_subject(subject)[0]
    except InvalidInputError:
        return ""


def user_of_notice(_subject: str, data: bytes) -> str:
    """Return of whose goal a webhook was to tell: a gateway wrote it."""
    try:
        return decode(Notice, data).user
    except IoaError:
        return ""
