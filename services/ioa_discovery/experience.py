"""What discovery remembers of how tasks went: the last outcomes of each pool, as the stream of outcomes holds them.

Every replica folds the same stream into the same memory, so that all of them answer alike, and a restart changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable
from datetime import datetime

from ioa.ports.clock import Clock
from ioa.protocol.ids import PoolId
from ioa.protocol.outcomes import REMEMBERED, UNTRIED, Outcome, Record, Remembered, record_of, remember


class Experience:
    """The last outcomes of each pool, in the order of the stream."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._memory: dict[PoolId, deque[Remembered]] = {}

    def add(self, outcome: Outcome) -> None:
        """Remember an outcome, and forget the oldest of its pool."""
        self._memory.setdefault(outcome.pool, deque(maxlen=REMEMBERED)).append(remember(outcome))

    async def follow(self, outcomes: AsyncIterable[Outcome]) -> None:
        """Remember outcomes as they come, until the source ends."""
        async for outcome in outcomes:
            self.add(outcome)

    def now(self) -> datetime:
        """Read the clock by which what is old counts less."""
        return self._clock.now()

    def record(self, pool: PoolId, kind: int, now: datetime) -> Record:
        """Conclude how a pool will do a task of a kind."""
        memory = self._memory.get(pool)
        return record_of(memory, kind, now) if memory else UNTRIED
