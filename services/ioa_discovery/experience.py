"""Remembered outcomes: the last outcomes of each pool, read from the stream of outcomes.

Every replica of discovery reads the whole stream, so all of them have the same memory, and a restart changes nothing.
"""

from __future__ import annotations

from collections import deque

from ioa.ports.clock import Clock
from ioa.protocol.agents.outcomes import REMEMBERED, UNTRIED, Outcome, Record, weigh_outcomes
from ioa.protocol.ids import PoolId


class Experience:
    """The remembered outcomes, and the record of each pool."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._memory: dict[PoolId, deque[Outcome]] = {}

    def add(self, outcome: Outcome) -> None:
        """Remember an outcome, and remove the oldest of its pool; a repeated outcome is ignored."""
        if not self.has(outcome):
            self._memory.setdefault(outcome.pool, deque(maxlen=REMEMBERED)).append(outcome)

    def has(self, outcome: Outcome) -> bool:
        """Whether the outcome of this task is remembered."""
        return bool(outcome.task) and any(one.task == outcome.task for one in self._memory.get(outcome.pool, ()))

    def forget(self) -> None:
        """Remove all outcomes."""
        self._memory.clear()

    def record(self, pool: PoolId, kind: int) -> Record:
        """Return a pool's record for a kind of task."""
        memory = self._memory.get(pool)
        return weigh_outcomes(memory, kind, self._clock.now()) if memory else UNTRIED
