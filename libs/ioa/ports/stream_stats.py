"""How the streams and queues of the system stand, for whoever watches over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class QueueStats:
    """How a durable consumer stands.

    Attributes:
        waiting: Messages that nobody has taken.
        taken: Messages that are not acknowledged.
        again: Those of them that were delivered more than once.
        readers: Pulls that wait for a message; None if that is not known.
        most_taken: How many may be unacknowledged at a time; 0 if that is not known, or not bounded.
    """

    name: str
    waiting: int
    taken: int
    again: int = 0
    readers: int | None = None
    most_taken: int = 0

    @property
    def is_unread(self) -> bool:
        """Whether messages wait, and nobody is there to take them."""
        return self.waiting > 0 and self.taken == 0 and self.readers == 0


@dataclass(frozen=True)
class StreamStats:
    """A stream: what it holds, its queues, and how many bytes it may hold; 0 if it has no bound of its own."""

    name: str
    messages: int
    size_bytes: int
    queues: tuple[QueueStats, ...]
    limit_bytes: int = 0


class StreamStatsSource(Protocol):
    """Tells how things stand."""

    async def read(self) -> Sequence[StreamStats]:
        """Ask for every stream.

        Raises:
            UnavailableError: JetStream does not answer.
        """
