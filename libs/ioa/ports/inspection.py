"""Facts about the server and streams below a system, for whoever says what is wrong with it. Judging them is the asker's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from ioa.ports.stream_stats import StreamStatsSource
from ioa.ports.system_client import SystemClient
from ioa.protocol.authcallout import CalloutStatus
from ioa.protocol.ids import TenantId


@dataclass(frozen=True)
class ServerFacts:
    """What the server says of itself when somebody connects. `version` is empty if it does not say."""

    version: str
    max_payload_bytes: int


@dataclass(frozen=True)
class StreamShare:
    """A stream that may hold so much, and what it holds."""

    name: str
    stored_bytes: int
    limit_bytes: int


@dataclass(frozen=True)
class StorageFacts:
    """What JetStream holds, and streams with bounds of their own. `limit_bytes` is None if there is no limit but the disk."""

    streams: int
    stored_bytes: int
    limit_bytes: int | None
    shares: tuple[StreamShare, ...] = ()


@dataclass(frozen=True)
class TopologyFacts:
    """The streams and buckets that a system needs.

    Attributes:
        expected: How many there are when all are there.
        missing: Names of those that are not, and of consumers as `stream/consumer`.
        unscheduled: Names of those that have to schedule messages and do not.
    """

    expected: int
    missing: Sequence[str]
    unscheduled: Sequence[str]


@dataclass(frozen=True)
class DeadLetterKind:
    """Dead letters of one reason: how many, the newest one's place in the stream, what it says, and what it was.

    `seq` is 0 if whoever asks may only count them.
    """

    reason: str
    count: int
    seq: int
    why: str
    subject: str


@dataclass(frozen=True)
class RejectedCaller:
    """A caller whose requests a service rejected within the last minute.

    Attributes:
        caller: Name of the agent or user.
        limit: `rate`: too many requests per second; `share`: too many waiting requests.
        count: Number of rejected requests.
    """

    caller: str
    limit: str
    count: int


@dataclass(frozen=True)
class RejectedCallers:
    """The rejected callers, those with most rejections first, and the services that did not answer."""

    callers: Sequence[RejectedCaller]
    missing: Sequence[str] = ()


class Inspection(StreamStatsSource, Protocol):
    """One connection to a server, and what can be found out over it. `read` tells how streams and queues stand."""

    @property
    def server(self) -> ServerFacts:
        """What the server said at connecting."""

    @property
    def system(self) -> SystemClient:
        """The system on that server, asked over the same connection."""

    async def tenant(self) -> TenantId | None:
        """Ask whose system it is; None if its tenant has no name."""

    async def storage(self) -> StorageFacts | None:
        """Ask what JetStream holds; None if it is off or does not answer."""

    async def topology(self) -> TopologyFacts:
        """Look for every stream, bucket and shared consumer."""

    async def clock_difference(self) -> timedelta | None:
        """Measure how far the server's clock is ahead of this machine's; None if nothing there tells the time."""

    async def answers(self, service: str) -> bool:
        """Whether a service, such as `ioa-router`, answers a ping (NATS ADR-32)."""

    async def rejected_callers(self, services: Collection[str] = ()) -> RejectedCallers:
        """Return the callers that any replica rejected lately. Waits some seconds for an answer of each of `services`."""

    async def callout(self) -> CalloutStatus | None:
        """Ask a replica of the auth callout whom it lets in; None if none answers, or who asks may not know."""

    async def dead_letter_kinds(self) -> Sequence[DeadLetterKind]:
        """Count dead letters by their reason, and read the newest of each if whoever asks may."""
