"""Looking at a control plane in memory as a doctor does, with the ills that a test gives it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from ioa.ports.inspection import DeadLetterKind, RejectedCaller, RejectedCallers, ServerFacts, StorageFacts, TopologyFacts
from ioa.ports.stream_stats import QueueStats, StreamStats
from ioa.ports.system_client import SystemClient
from ioa.protocol.authcallout import CalloutStatus
from ioa.protocol.ids import TenantId
from ioa_testkit.memory_plane import MemoryControlPlane

_SERVICES = ("ioa-registry", "ioa-discovery", "ioa-groups", "ioa-router")


class MemoryInspection:
    """An `Inspection` of what is in memory. False in this: there is no server, so that of its health it says what it was told.

    Attributes:
        server: What the server says of itself.
        of: Whose system it is.
        held: What JetStream holds; None as if it were off.
        streams: Which streams and buckets there are.
        clock_is_ahead: By how much the server's clock is.
        silent: Services that do not answer.
        rejected: Who asks services too often.
        entrance: How the auth callout fares; None as if there were none.
        may_read: Whether whoever asks may read dead letters, not only count them.
    """

    def __init__(self, plane: MemoryControlPlane, system: SystemClient) -> None:
        self._plane = plane
        self._system = system
        self.server = ServerFacts("2.12.0", 1024 * 1024)
        self.of: TenantId | None = None
        self.held: StorageFacts | None = StorageFacts(0, 0, None)
        self.streams = TopologyFacts(0, (), ())
        self.clock_is_ahead: timedelta | None = timedelta(0)
        self.silent: set[str] = set()
        self.rejected: list[RejectedCaller] = []
        self.entrance: CalloutStatus | None = None
        self.may_read = True

    @property
    def system(self) -> SystemClient:
        """The system."""
        return self._system

    async def tenant(self) -> TenantId | None:
        """Say what it was told."""
        return self.of

    async def storage(self) -> StorageFacts | None:
        """Tell what it was told."""
        return self.held

    async def topology(self) -> TopologyFacts:
        """Tell what it was told."""
        return self.streams

    async def clock_difference(self) -> timedelta | None:
        """Tell what it was told."""
        return self.clock_is_ahead

    async def answers(self, service: str) -> bool:
        """Every service answers that is not silent."""
        return service in _SERVICES and service not in self.silent

    async def read(self) -> Sequence[StreamStats]:
        """Count what waits for an agent."""
        waiting = len(self._plane.work.waiting())
        return [StreamStats("IOA_WORK", waiting, 0, (QueueStats("any", waiting, 0),))]

    async def rejected_callers(self, services: Collection[str] = ()) -> RejectedCallers:
        """Tell what it was told; who is silent does not say."""
        return RejectedCallers(self.rejected, [service for service in services if not await self.answers(service)])

    async def callout(self) -> CalloutStatus | None:
        """Tell what it was told."""
        return self.entrance

    async def dead_letter_kinds(self) -> Sequence[DeadLetterKind]:
        """Count dead letters by their reason."""
        letters = (await self._plane.dead_letters.page(limit=len(self._plane.dead.letters) + 1)).letters
        kinds: dict[str, DeadLetterKind] = {}
        for letter in reversed(letters):
            number = kinds[letter.reason].count + 1 if letter.reason in kinds else 1
            newest = (letter.seq, letter.why, letter.subject) if self.may_read else (0, "", "")
            kinds[letter.reason] = DeadLetterKind(letter.reason, number, *newest)
        return list(kinds.values())
