"""How JetStream stands, as group setup tells those who may not ask it themselves: its own requests know no quotas."""

from __future__ import annotations

from ioa.protocol.model import Model, Time
from ioa.protocol.usage import Count


class AskStoreStanding(Model):
    """Ask how JetStream stands."""


class QueueStanding(Model):
    """How a durable consumer stands.

    Attributes:
        waiting: Messages that nobody has taken.
        taken: Messages that are not acknowledged.
        again: Those of them that were delivered more than once.
        readers: Pulls that wait for a message.
        most_taken: How many may be unacknowledged at a time; 0 if there is no bound.
    """

    name: str
    waiting: Count
    taken: Count
    again: Count = 0
    readers: Count = 0
    most_taken: Count = 0

    @property
    def is_unread(self) -> bool:
        """Whether messages wait and no reader asks for them."""
        return self.waiting > 0 and self.taken == 0 and self.readers == 0


class StreamStanding(Model):
    """A stream: what it holds in how many bytes, how many it may hold (0: no bound), and its queues, those that are idle left out.

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
    """How JetStream stood.

    Attributes:
        at: When that was, by the server's clock; None if there is no stream whose answer tells.
        stored_bytes: What it holds in all, beside the streams of this system too.
        limit_bytes: What it may hold; 0 if there is no limit but the disk.
        streams: Its streams.
        missing: Shared consumers that are not there, as `stream/consumer`.
        dead_letters: How many there are, by reason.
    """

    at: Time | None
    stored_bytes: Count
    limit_bytes: Count
    streams: tuple[StreamStanding, ...]
    missing: tuple[str, ...]
    dead_letters: dict[str, int]
