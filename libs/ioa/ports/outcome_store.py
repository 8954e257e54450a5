"""How tasks went, kept for whoever wants to learn from it."""

from __future__ import annotations

from typing import Protocol

from ioa.protocol.outcomes import Outcome


class OutcomeStore(Protocol):
    """The last outcomes of each pool, in one order for everybody."""

    async def put(self, outcome: Outcome, *, key: str) -> None:
        """Keep an outcome. The same key again, within two minutes, is the same outcome.

        Raises:
            UnavailableError: It may be put again.
        """


class OutcomeListener(Protocol):
    """Who learns from outcomes."""

    def add(self, outcome: Outcome) -> None:
        """Take in the next one."""

    def forget(self) -> None:
        """Forget all: they are told again from the first that is kept."""
