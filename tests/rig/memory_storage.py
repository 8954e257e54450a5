"""A storage whose usage a test sets."""

from __future__ import annotations

from ioa.runtime.store_share import StoreShare


class MemoryStorage(StoreShare):
    """A store whose usage a test sets."""

    def __init__(self) -> None:
        self._is_full = False
        self.used_part = 0.0
        """What `used` returns."""
        self.accepts_goals = True
        """What `accept_goals` set last."""

    async def used(self) -> float:
        """Return `used_part`."""
        return self.used_part

    async def accept_goals(self, accept: bool) -> None:
        """Note whether goals are accepted."""
        self.accepts_goals = accept
