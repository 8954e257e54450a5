"""Looking through what could not be processed, and putting it back. `DeadLetters` is where services put it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ioa.errors import InvalidInputError
from ioa.protocol.dead_letters import DeadReason


@dataclass(frozen=True)
class DeadLetter:
    """A message that could not be processed.

    Attributes:
        seq: Its number in the stream of dead letters.
        reason: Why, in a word of `DeadReason`.
        why: Why, in a sentence.
        subject: Where the message was published.
        at: When it was set aside.
        data: The message as it came; of one too large to be kept whole, the beginning.
        size_bytes: How large it was.
    """

    seq: int
    reason: str
    why: str
    subject: str
    at: datetime | None
    data: bytes
    size_bytes: int

    def check_returnable(self) -> None:
        """See that the message can be put back.

        Raises:
            InvalidInputError: It is no message of a queue, or was not kept whole.
        """
        if self.reason == DeadReason.UNREADABLE_ENTRY:
            raise InvalidInputError(
                f"Dead letter {self.seq} is a copy of an entry of a group's log, where it still stands.",
                hint="The group's goal ends at its deadline; publish the goal anew.",
            )
        if len(self.data) < self.size_bytes:
            raise InvalidInputError(
                f"Of dead letter {self.seq} only {len(self.data):,} of {self.size_bytes:,} bytes were kept.",
                hint="Whoever published it has to publish it again, in less.",
            )


@dataclass(frozen=True)
class DeadLetterPage:
    """Letters, newest first, and the number to go on from; None when there are no older ones."""

    letters: Sequence[DeadLetter]
    before: int | None


class DeadLetterBox(Protocol):
    """Dead letters, for those who look after a system."""

    async def page(self, *, limit: int, before: int | None = None) -> DeadLetterPage:
        """List the newest letters, or the newest of those before a number.

        Raises:
            UnavailableError: The letters are out of reach.
        """

    async def read(self, seq: int) -> DeadLetter:
        """Read one letter.

        Raises:
            NotFoundError: There is none of this number, or not any more.
            UnavailableError: The letters are out of reach.
        """

    async def put_back(self, letter: DeadLetter) -> bool:
        """Publish the message again where it was published, and take the letter out; False if it had been put back already.

        Raises:
            InvalidInputError: It cannot be put back: it is no message of a queue, or was not kept whole.
            UnavailableError: It cannot be put back now, or not by who asks.
        """
