"""Time and ids under the control of a test."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """A `Clock` that only a test advances."""

    def __init__(self) -> None:
        self._now = NEW_YEAR

    def now(self) -> datetime:
        """Return the instant the clock was last set to."""
        return self._now

    def advance(self, by: timedelta) -> None:
        """Advance the clock."""
        self._now += by

    def advance_to(self, at: datetime) -> None:
        """Advance the clock to `at`; an earlier instant changes nothing."""
        self._now = max(self._now, at)


class CountedIds:
    """An `IdSource` that counts: `m-1`, `m-2`, `t-1`."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        """Return the next id with this prefix."""
        self._given[prefix] += 1
        return f"{prefix}-{self._given[prefix]}"
