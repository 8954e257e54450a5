"""The state of JetStream, as group setup reports it to callers that may not send requests to JetStream."""

from __future__ import annotations

from ioa.protocol.model import Model
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
