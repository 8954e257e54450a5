"""The store that all streams share."""

from __future__ import annotations

from typing import Protocol


class Storage(Protocol):
    """JetStream's storage in one account."""

    async def used(self) -> float:
        """Return the used part of the store or of the log stream, whichever is larger; 1 is full, 0 if there is no limit.

        Raises:
            UnavailableError: The store does not answer.
        """

    async def accept_goals(self, accept: bool) -> None:
        """Set whether the stream of published goals accepts more. Publishing to a closed stream raises `StoreFullError`.

        Raises:
            UnavailableError: The store does not answer.
        """
