"""How the streams and queues of the system stand, for whoever watches over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class QueueStanding:
    """A durable consumer: `waiting` messages nobody has taken, `taken` ones that are not acknowledged, and of those `again` ones
    that were delivered more than once.
    """

    name: str
    waiting: int
    taken: int
    again: int = 0


@dataclass(frozen=True)
class StreamStanding:
    """A stream: what it holds, and its queues."""

    name: str
    messages: int
    size_bytes: int
    queues: tuple[QueueStanding, ...]


class Standings(Protocol):
    """Tells how things stand."""

    async def read(self) -> Sequence[StreamStanding]:
        """Ask for every stream.

        Raises:
            UnavailableError: JetStream does not answer.
        """
