"""Dead letters: messages that could not be processed, with their reasons."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from ioa.errors import InvalidInputError
from ioa.protocol.model import Model, Time
from ioa.protocol.usage import Count


class DeadReason(StrEnum):
    """Reason of a dead letter."""

    UNREADABLE = "unreadable"
    """The message is not a goal, or refers to a missing file."""
    TOO_LARGE = "too_large"
    CONFLICT = "conflict"
    """The goal's id belongs to another goal."""
    ENDED = "ended"
    """The goal ended, and all but its outcome was removed."""
    FAILED = "failed"
    """The system failed to accept the goal."""
    UNDELIVERABLE = "undeliverable"
    """The work on the message failed repeatedly, or its kind is unknown."""
    UNREADABLE_ENTRY = "unreadable_entry"
    """A copy of an unreadable entry of a group's log; the group cannot continue."""
    WEBHOOK = "webhook"
    """A notice that its webhook did not accept within a day."""


class DeadLetter(Model):
    """A message that could not be processed.

    Attributes:
        seq: Sequence in the stream of dead letters.
        reason: A value of `DeadReason`.
        why: The reason, as a sentence.
        subject: Subject of the message.
        at: Time at which it was stored.
        size_bytes: Size of the message.
        data: The message, or its beginning if it is too large; empty in lists. It travels in `DeadPage.data`.
    """

    seq: Count
    reason: str
    why: str
    subject: str
    at: Time | None
    size_bytes: Count
    data: Annotated[bytes, Field(exclude=True)] = b""

    def check_returnable(self) -> None:
        """Check that the message can be published again.

        Raises:
            InvalidInputError: It is not a message of a queue, or is incomplete.
        """
        if self.reason == DeadReason.UNREADABLE_ENTRY:
            raise InvalidInputError(
                f"Dead letter {self.seq} is a copy of an entry, which is still in the log of its group.",
                hint="The group's goal ends at its deadline; publish the goal again.",
            )
        if len(self.data) < self.size_bytes:
            raise InvalidInputError(
                f"Of dead letter {self.seq} only {len(self.data):,} of {self.size_bytes:,} bytes were kept.",
                hint="The publisher must publish a smaller message.",
            )
