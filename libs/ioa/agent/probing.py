"""When an agent asks for news of groups of which it hears nothing: decided in one place for all of them, without clock or task.

Pushes can be lost, and so can whoever was to push. What was pushed later shows the gap; if nothing comes, only asking helps. An
agent asks soon after it last heard of a group, then ever more rarely, and again soon after a deadline of the group has passed,
since something must have happened then. Times are seconds on any clock that never goes back.

Group setup tells an agent so much a second in all its groups together, pages of long logs as well. Others may have any number of
groups fall silent again and again: so most of what it tells is asked for without knowing of anything that is missing, and not all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from ioa.protocol.ids import CommId
from ioa.quotas import RATES, Family

FIRST = timedelta(seconds=3)
_LONGEST = timedelta(minutes=5)
_AFTER_DEADLINE = timedelta(seconds=1)
_SPREAD_SECONDS = 0.005
"""How far apart groups are asked for when all of them are due at once."""
_JITTER = 0.2
_PER_SECOND, _BURST = RATES[Family.SYNC].per_second * 3 / 4, RATES[Family.SYNC].burst / 2
"""How many groups are asked for in a second, and at once."""


@dataclass
class _Silence:
    """How long a group is waited for, and when it is asked for next. `queued` is the place in the queue that counts."""

    pause: float
    due: float
    queued: float


class Probing:
    """Know when each group is to be asked for next.

    Args:
        chance: Draws a number from 0 to 1; spreads the requests of many agents.
        first: The first pause.
    """

    def __init__(self, chance: Callable[[], float], first: timedelta = FIRST) -> None:
        self._chance = chance
        self._first = first.total_seconds()
        self._silences: dict[CommId, _Silence] = {}
        self._queue: list[tuple[float, CommId]] = []
        self._full_at = float("-inf")
        """From when on as many may be asked for at once as ever."""

    def hear(self, comm_id: CommId, now: float) -> None:
        """Note that something of a group came: the pauses begin anew."""
        self._set(comm_id, self._first, now + self._jittered(self._first))

    def ask_at_once(self, comm_id: CommId, now: float) -> None:
        """Have a group asked for now."""
        self._set(comm_id, self._first, now)

    def ask_for_all(self, now: float) -> None:
        """Have every group asked for, one soon after the other in any order: the connection was renewed."""
        span = _SPREAD_SECONDS * len(self._silences)
        for comm_id in self._silences:
            self._set(comm_id, self._first, now + span * self._chance())

    def find_silent(self, comm_id: CommId, now: float, deadline: float | None) -> None:
        """Note that a group was asked for and there was nothing new.

        Args:
            comm_id: The group.
            now: The time.
            deadline: When the group itself has to move on; it is asked for right after that, if it is not asked before.
        """
        silence = self._silences.get(comm_id)
        if silence is None:
            return
        pause = min(silence.pause * 2, _LONGEST.total_seconds())
        due = now + self._jittered(pause)
        if deadline is not None and now < deadline + _AFTER_DEADLINE.total_seconds() < due:
            due, pause = deadline + _AFTER_DEADLINE.total_seconds() * (1 + self._chance()), self._first
        self._set(comm_id, pause, due)

    def forget(self, comm_id: CommId) -> None:
        """Ask for a group no more."""
        self._silences.pop(comm_id, None)

    def next_due(self) -> float | None:
        """When a group is to be asked for next; None if there is none."""
        due = self._first_due()
        return None if due is None else max(due, self._full_at - (_BURST - 1) / _PER_SECOND)

    def _first_due(self) -> float | None:
        while self._queue:
            due, comm_id = self._queue[0]
            silence = self._silences.get(comm_id)
            if silence is not None and silence.queued == due == silence.due:
                return due
            heapq.heappop(self._queue)
            if silence is not None and silence.queued == due:
                self._push(comm_id, silence)
        return None

    def take(self, now: float) -> CommId | None:
        """Take a group that is due; it is asked for again after its pause, whatever becomes of this."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, comm_id = heapq.heappop(self._queue)
        self._full_at = max(self._full_at, now) + 1 / _PER_SECOND
        silence = self._silences[comm_id]
        silence.due = now + self._jittered(silence.pause)
        self._push(comm_id, silence)
        return comm_id

    def _set(self, comm_id: CommId, pause: float, due: float) -> None:
        """Set when a group is due. The queue is only touched where that is earlier than before: most of the time it is later."""
        silence = self._silences.get(comm_id)
        if silence is None:
            silence = self._silences[comm_id] = _Silence(pause, due, due)
            heapq.heappush(self._queue, (due, comm_id))
            return
        silence.pause, silence.due = pause, due
        if due < silence.queued:
            self._push(comm_id, silence)

    def _push(self, comm_id: CommId, silence: _Silence) -> None:
        silence.queued = silence.due
        heapq.heappush(self._queue, (silence.due, comm_id))

    def _jittered(self, pause: float) -> float:
        return pause * (1 + _JITTER * (self._chance() - 0.5))
