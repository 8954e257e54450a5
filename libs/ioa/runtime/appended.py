"""What each agent has appended to groups' logs, and pushed to their members: a small message may be an entry of megabytes.

An entry carries the state of its group, so that its bytes tell what it costs, and not those of what was said. They are known when
it is appended: whoever has had more appended than he may is told when to come back before the next one is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import structlog

from ioa.errors import RateLimitedError
from ioa.group.events import Event, GroupLaunched, MemberJoined, MessageRefused, RepetitionRefused, Said, SubgroupOpened
from ioa.ports.inspection import SlowedCaller
from ioa.protocol.ids import AgentId
from ioa.quotas import RATES, Admitted, Buckets, Family, Rate

_PUSHED_PART = 4
"""An entry that is shown to so many counts for them as much as for being stored: it is not kept there."""
_COME_BACK = 5.0
"""In how many seconds somebody is to come back who does not listen."""

_log = structlog.get_logger(__name__)


def _nobody(_caller: str, _family: Family) -> None:
    """Tell nobody."""


class Appended:
    """Counts, by agent, the bytes of what it has appended.

    Args:
        now: Tells the time in seconds; it never goes back.
        rate: How much of it one agent may, in kB.
        slowed: Is told of an agent that has more appended, once in a while.
    """

    def __init__(
        self, now: Callable[[], float], rate: Rate = RATES[Family.LOGS], slowed: Callable[[str, Family], None] = _nobody
    ) -> None:
        self._now = now
        self._buckets = Buckets({Family.LOGS: rate})
        self._slowed = slowed

    def check(self, agent_id: AgentId) -> None:
        """See that an agent may have something appended now.

        Raises:
            RateLimitedError: It has had too much. It is told when to come back.
        """
        judged = self._buckets.judge(agent_id, Family.LOGS, self._now())
        if isinstance(judged, Admitted):
            return
        if judged.is_first:
            _log.warning("caller_slowed_down", caller=agent_id, family=Family.LOGS.value)
            self._slowed(agent_id, Family.LOGS)
        wait = _COME_BACK if judged.retry_after is None else judged.retry_after
        raise RateLimitedError(
            f"What {agent_id} says makes entries that are too many bytes together.",
            retry_after=timedelta(seconds=wait),
            hint="Entries carry the open tasks of their group, with what these ask: have fewer open, or say them in fewer words.",
        )

    def note(self, event: Event, size_bytes: int, shown_to: int) -> None:
        """Charge whoever has caused an entry of so many bytes, which is pushed to so many members."""
        if (agent_id := _caused_by(event)) is not None:
            weight = size_bytes + size_bytes * shown_to // _PUSHED_PART
            self._buckets.charge(agent_id, Family.LOGS, self._now(), answered_bytes=weight)

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return who was refused lately, and how often."""
        found = self._buckets.slowed(self._now())
        return [SlowedCaller(caller, family.value, number) for (caller, family), number in found.items()]


def _caused_by(event: Event) -> AgentId | None:
    match event:
        case Said():
            return event.message.header.sender
        case GroupLaunched():
            return event.charter.owner
        case MemberJoined() | SubgroupOpened() | MessageRefused() | RepetitionRefused():
            return event.by
        case _:
            return None
