"""Outcomes of tasks in a list."""

from __future__ import annotations

from ioa.adapters.nats.stores.outcome_store import NatsOutcomes
from ioa.protocol.agents.outcomes import Outcome


class MemoryOutcomes(NatsOutcomes):
    """Outcomes by key, which are never removed."""

    def __init__(self) -> None:
        self.kept: dict[str, Outcome] = {}
        """By key, in the order in which they came."""

    async def put(self, outcome: Outcome, *, key: str) -> None:
        """Keep an outcome."""
        self.kept.setdefault(key, outcome)
