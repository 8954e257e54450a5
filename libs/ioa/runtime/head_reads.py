"""What is read of logs for messages that a router's memory refuses, or of whose group it remembers nothing.

Memory may be old, so that nothing is refused by it alone. But the head of a log may be an entry of a megabyte, and a message that
is refused has a hundred bytes: so what is read for a sender counts by its bytes, and who has had too much read is to come back
before more is. Messages that memory knows to be legal have nothing read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ioa.errors import RateLimitedError
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.ids import AgentId
from ioa.quotas import RATES, SAY_UNIT_BYTES, Family, Rate
from ioa.runtime.caller_pace import CallerPace

_PARTS = 4
"""One read of so many is what a message may have read of a small group: three times at most, and so as often as it may be said."""
_READS = Rate(
    _PARTS * RATES[Family.SAY].per_second,
    _PARTS * 256,
    unit_bytes=SAY_UNIT_BYTES // _PARTS,
    answer_bytes=SAY_UNIT_BYTES // _PARTS,
)
"""How much is read of logs for one sender: 4 MB at once, and then as much as it may say."""


class HeadReads:
    """Counts, by sender, what is read of logs for its messages.

    Args:
        now: Tells the time in seconds; it never goes back.
        slowed: Is told of a sender that has more read, once in a while.
    """

    def __init__(self, now: Callable[[], float], slowed: Callable[[str, Family], None]) -> None:
        self._pace = CallerPace(now, Family.SAY, _READS, slowed)

    def take(self, sender: AgentId, size_bytes: int) -> None:
        """See that so much may be read for a sender, as far as it is known before, and count it.

        Raises:
            RateLimitedError: It has had too much read. It is told when to come back.
        """
        after = self._pace.put_off(sender, size_bytes)
        if after is not None:
            raise RateLimitedError(
                f"The log was read too often to judge what {sender} says.",
                retry_after=after,
                hint="Read what the group has said meanwhile before the next message.",
            )

    def charge(self, sender: AgentId, size_bytes: int) -> None:
        """Count what was read beyond what was known before."""
        self._pace.charge(sender, size_bytes)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return for whom too much was read lately, and how often it was told so."""
        return self._pace.slowed()
