"""What discovery remembers of how tasks went: the last outcomes of each pool, as the stream of outcomes holds them.

Every replica folds the same stream into the same memory, so that all of them answer alike, and a restart changes nothing.
What is old counts less by the time of each search.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import datetime
from math import exp
from statistics import median

from ioa.ports.clock import Clock
from ioa.protocol.ids import PoolId
from ioa.protocol.outcomes import REMEMBERED, UNTRIED, Outcome, Record, Remembered, record_of, remember


class Experience:
    """An `OutcomeListener` that answers how a pool will do. It keeps the last outcomes of each, in the order of the stream."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._memory: dict[PoolId, deque[Remembered]] = {}

    def add(self, outcome: Outcome) -> None:
        """Remember an outcome, and forget the oldest of its pool; a task that is told again changes nothing."""
        memory = self._memory.setdefault(outcome.pool, deque(maxlen=REMEMBERED))
        if not outcome.task or all(one.task != outcome.task for one in memory):
            memory.append(remember(outcome))

    def is_news(self, outcome: Outcome) -> bool:
        """Whether an outcome tells something that is worth remembering: what is older than all of many drives none of them out."""
        memory = self._memory.get(outcome.pool, ())
        is_known = any(one.task == outcome.task for one in memory)
        return not is_known and (len(memory) < REMEMBERED or outcome.at.timestamp() > min(one.at for one in memory))

    def forget(self) -> None:
        """Forget all."""
        self._memory.clear()

    def now(self) -> datetime:
        """Read the clock by which what is old counts less."""
        return self._clock.now()

    def usual_seconds(self, pool: PoolId) -> float | None:
        """Return how long tasks take a pool that it does, the median over owners of each one's median; None if it has done none.

        So no single owner says what is usual, however many tasks it tells of.
        """
        paces: defaultdict[PoolId | None, list[float]] = defaultdict(list)
        for one in self._memory.get(pool, ()):
            if one.done:
                paces[one.owner].append(one.pace)
        return exp(median([median(of_one) for of_one in paces.values()])) if paces else None

    def record(self, pool: PoolId, kind: int, now: datetime) -> Record:
        """Conclude how a pool will do a task of a kind."""
        memory = self._memory.get(pool)
        return record_of(memory, kind, now) if memory else UNTRIED
