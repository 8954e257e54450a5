"""Time and ids, injected so that tests never sleep and never guess."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The wall clock."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""


class IdSource(Protocol):
    """A source of unique ids."""

    def new(self, prefix: str) -> str:
        """Return a fresh id that begins with `prefix` and is a valid subject token."""
