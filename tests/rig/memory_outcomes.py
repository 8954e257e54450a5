"""Outcomes of tasks in a list."""

from __future__ import annotations

from ioa.protocol.outcomes import Outcome


class MemoryOutcomes:
    """An `OutcomeStore` for unit tests. False in this: it forgets neither old outcomes nor old keys until the process ends."""

    def __init__(self) -> None:
        self.kept: dict[str, Outcome] = {}
        """By key, in the order in which they came."""

    async def put(self, outcome: Outcome, *, key: str) -> None:
        """Keep an outcome."""
        self.kept.setdefault(key, outcome)
