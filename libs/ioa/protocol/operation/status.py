"""Status of JetStream, and the removal of old goals: requests and replies."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from ioa.protocol.model import Instruction, Model
from ioa.protocol.usage import Count


class AskStoreStanding(Model):
    """Read the state of JetStream."""


class QueueStanding(Model):
    """The state of a durable consumer.

    Attributes:
        waiting: Messages that no reader has taken.
        taken: Messages that a reader has taken and not acknowledged.
        readers: Pulls that wait for a message.
    """

    name: str
    waiting: Count
    taken: Count
    readers: Count = 0

    @property
    def is_unread(self) -> bool:
        """Whether messages wait and no reader asks for them."""
        return self.waiting > 0 and self.taken == 0 and self.readers == 0


class StreamStanding(Model):
    """A stream: its messages, their size, its maximum size (0: unlimited), and its queues.

    Attributes:
        schedules: Whether it schedules messages (NATS ADR-51).
    """

    name: str
    messages: Count
    stored_bytes: Count
    limit_bytes: Count = 0
    schedules: bool = False
    queues: tuple[QueueStanding, ...] = ()


class StoreStanding(Model):
    """The state of JetStream.

    Attributes:
        stored_bytes: Size of all streams of the account.
        limit_bytes: Maximum size; 0 if only the disk is a limit.
        streams: The streams, with the queues in which most messages wait.
        missing: Missing consumers, as `stream/consumer`.
        dead_letters: Number of dead letters, by reason.
    """

    stored_bytes: Count
    limit_bytes: Count
    streams: tuple[StreamStanding, ...]
    missing: tuple[str, ...]
    dead_letters: dict[str, int]


class Prune(Instruction):
    """Remove the data of goals that ended more than `older_than` ago, in a part of the stored goals.

    Attributes:
        after: Begin of the part: 0, or `after` of the previous reply.
        dry_run: Only count.
    """

    older_than: Annotated[timedelta, Field(ge=timedelta(0))]
    after: Count = 0
    dry_run: bool = False


class Pruned(Model):
    """The removed data, or with `dry_run` the data to remove, of a part of the stored goals.

    Attributes:
        goals: Number of goals by the reason of their end, or `unknown`.
        groups: Number of their groups, including nested ones.
        files: Number of their input and result files.
        failed: Number of goals that could not be removed completely; the next removal continues them.
        after: Begin of the next part; None if there is none.
    """

    goals: dict[str, int] = Field(default_factory=dict)
    groups: int = 0
    files: int = 0
    failed: int = 0
    after: int | None = None
