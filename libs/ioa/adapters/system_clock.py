"""The machine's clock and random ids."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime


class SystemClock:
    """The wall clock of this machine."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return datetime.now(UTC)


class RandomIds:
    """Ids with 122 random bits."""

    def new(self, prefix: str) -> str:
        """Return a fresh id such as `m-5f0c…`."""
        return f"{prefix}-{uuid.uuid4().hex}"
