"""What is read of logs for messages that a router's memory refuses, or of whose group it remembers nothing.

Memory may be old, so that nothing is refused by it alone. But the head of a log may be an entry of a megabyte, and a message that
is refused has a hundred bytes: so what is read for a sender counts by its bytes, and who has had too much read is to come back
before more is. Messages that memory knows to be legal have nothing read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from ioa.errors import RateLimitedError
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.ids import AgentId
from ioa.quotas import RATES, SAY_UNIT_BYTES, Admitted, Buckets, Family, Rate

_PARTS = 4
"""One read of so many is what a message may have read of a small group: three times at most, and so as often as it may be said."""
_READS = Rate(
    _PARTS * RATES[Family.SAY].per_second,
    _PARTS * 256,
    unit_bytes=SAY_UNIT_BYTES // _PARTS,
    answer_bytes=SAY_UNIT_BYTES // _PARTS,
)
"""How much is read of logs for one sender: 4 MB at once, and then as much as it may say."""
_COME_BACK = timedelta(seconds=5)
"""When somebody is to come back who does not listen."""

_log = structlog.get_logger(__name__)


class HeadReads:
    """Counts, by sender, what is read of logs for its messages.

    Args:
        now: Tells the time in seconds; it never goes back.
        slowed: Is told of a sender that has more read, once in a while.
    """

    def __init__(self, now: Callable[[], float], slowed: Callable[[str, Family], None]) -> None:
        self._now = now
        self._slowed = slowed
        self._buckets = Buckets({Family.SAY: _READS})

    def take(self, sender: AgentId, size_bytes: int) -> None:
        """See that so much may be read for a sender, as far as it is known before, and count it.

        Raises:
            RateLimitedError: It has had too much read. It is told when to come back.
        """
        judged = self._buckets.judge(sender, Family.SAY, self._now(), size_bytes)
        if isinstance(judged, Admitted):
            return
        if judged.is_first:
            _log.warning("caller_slowed_down", caller=sender, family=Family.SAY.value)
            self._slowed(sender, Family.SAY)
        raise RateLimitedError(
            f"The log was read too often to judge what {sender} says.",
            retry_after=_COME_BACK if judged.retry_after is None else timedelta(seconds=judged.retry_after),
            hint="Read what the group has said meanwhile before the next message.",
        )

    def charge(self, sender: AgentId, size_bytes: int) -> None:
        """Count what was read beyond what was known before."""
        self._buckets.charge(sender, Family.SAY, self._now(), answered_bytes=size_bytes)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return for whom too much was read lately, and how often it was told so."""
        found = self._buckets.slowed(self._now())
        return [SlowedCaller(caller, family.value, number) for (caller, family), number in found.items()]
