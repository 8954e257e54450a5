"""Who takes goals off a queue and drops them, neither leading them nor giving them back, or keeps them for minutes without a group.

nats-server gives a goal to whoever asks for it with a key of the pool, be it the process that holds the agent's id or not, and does
not tell to whom. So what can be named is the pool whose goals were dropped, or kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import structlog

from ioa.ports.inspection import ANYBODY, DROPPED, KEPT, SlowedCaller
from ioa.protocol.ids import GoalName, PoolId
from ioa.quotas import SLOWED_FOR
from ioa.runtime.goal_metrics import put_back

_MOST_TIMES = 1_000
"""How many drops are counted of a pool; beyond them it is as bad as can be."""

_log = structlog.get_logger(__name__)


class DroppedGoals:
    """Counts, by pool, the goals that were dropped, or had been kept for too long, in the last minute.

    Args:
        now: Tells the time, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._times: dict[tuple[str, str], deque[float]] = {}

    def note(self, pool: PoolId | None, goal: GoalName, *, kept: bool = False) -> None:
        """Count a goal that somebody took off a pool's queue, or off that for anybody, and dropped; or kept for too long."""
        _log.warning("goal_kept" if kept else "goal_dropped", pool=pool, goal_id=goal.goal_id, user=goal.user)
        put_back.inc()
        self._forget()
        counted = (pool or ANYBODY, KEPT if kept else DROPPED)
        self._times.setdefault(counted, deque(maxlen=_MOST_TIMES)).append(self._now())

    def told(self) -> Sequence[SlowedCaller]:
        """Tell the pools whose goals were dropped or kept, and how many."""
        self._forget()
        return [SlowedCaller(pool, family, len(times)) for (pool, family), times in self._times.items()]

    def _forget(self) -> None:
        since = self._now() - SLOWED_FOR
        for times in self._times.values():
            while times and times[0] < since:
                times.popleft()
        self._times = {counted: times for counted, times in self._times.items() if times}
