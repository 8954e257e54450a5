"""How much of one family each of many may have: who has too much is named once in a while, and told when to come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Generic

import structlog

from ioa.ports.inspection import SlowedCaller
from ioa.quotas import Admitted, Buckets, F, Rate

COME_BACK = timedelta(seconds=5)
"""When somebody is to come back who does not listen."""

_log = structlog.get_logger(__name__)


def tell_nobody(_who: str, _family: str) -> None:
    """Name nobody."""


class CallerPace(Generic[F]):
    """Counts what each caller has of a family: one of requests, or what else the doctor names callers for.

    Args:
        now: Tells the time in seconds; it never goes back.
        family: What is counted.
        rate: How much of it each may have.
        slowed: Is told of a caller that has more, once in a while.
    """

    def __init__(self, now: Callable[[], float], family: F, rate: Rate, slowed: Callable[[str, F], None] = tell_nobody) -> None:
        self._now = now
        self._family = family
        self._buckets = Buckets({family: rate})
        self._slowed = slowed

    def put_off(self, caller: str, size_bytes: int = 0, counts: int | Callable[[], int] = 1) -> timedelta | None:
        """Count one more of so many bytes, or several; or return in how long the caller is to come back, who has had too much."""
        judged = self._buckets.judge(caller, self._family, self._now(), size_bytes, counts)
        if isinstance(judged, Admitted):
            return None
        if judged.is_first:
            _log.warning("caller_slowed_down", caller=caller, family=str(self._family))
            self._slowed(caller, self._family)
        return COME_BACK if judged.retry_after is None else timedelta(seconds=judged.retry_after)

    def count(self, caller: str) -> None:
        """Count one more, whatever comes of it: nobody is slowed down, and who has too much is named."""
        judged = self._buckets.judge(caller, self._family, self._now())
        if not isinstance(judged, Admitted) and judged.is_first:
            _log.warning("caller_named", caller=caller, family=str(self._family))

    def charge(self, caller: str, size_bytes: int) -> None:
        """Count what came of it, which was not known before."""
        self._buckets.charge(caller, self._family, self._now(), answered_bytes=size_bytes)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return who was put off lately, and how often."""
        found = self._buckets.slowed(self._now())
        return [SlowedCaller(caller, str(family), number) for (caller, family), number in found.items()]
