"""A reader of a group's news, called by a live subscription."""

from __future__ import annotations

from typing import Protocol

from ioa.group.events import Said


class GroupListener(Protocol):
    """A reader that is informed of new entries."""

    def hint(self) -> None:
        """Take the news that an entry was stored, or will be."""

    def look(self) -> None:
        """Take the news that a hint may be lost: periodically, and after each reconnect."""

    def report(self, said: Said) -> None:
        """Take a progress report that is not an entry."""
