"""Facts about the server and the streams of a system, for `ioa doctor`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.auth.identity import ask_caller, ask_tenant
from ioa.adapters.nats.requests.request import NatsRequester
from ioa.adapters.nats.requests.service import REJECTED
from ioa.adapters.nats.streams.stream_stats import QueueStats, StreamStats
from ioa.adapters.nats.streams.topology import STREAMS, TIMERS
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.cancellation import heeding_cancellation
from ioa.errors import ForbiddenError, IoaError, NotPermittedError, UnavailableError
from ioa.json_text import parse_json
from ioa.protocol import subjects
from ioa.protocol.authcallout import AskCalloutStatus, CalloutStatus
from ioa.protocol.ids import TenantId

_PING_SECONDS = 1.0
_QUIET_SECONDS = 0.5
_STATISTICS_SECONDS = 5.0
"""How long services may take to send their statistics."""


@dataclass(frozen=True)
class ServerFacts:
    """The server's greeting. `version` is empty if the server does not state it."""

    version: str
    max_payload_bytes: int


@dataclass(frozen=True)
class StreamShare:
    """The stored bytes of a stream, and their maximum."""

    name: str
    stored_bytes: int
    limit_bytes: int


@dataclass(frozen=True)
class StorageFacts:
    """The content of JetStream, and the streams with a maximum of their own. `limit_bytes` is None if only the disk is a limit."""

    streams: int
    stored_bytes: int
    limit_bytes: int | None
    shares: tuple[StreamShare, ...] = ()


@dataclass(frozen=True)
class TopologyFacts:
    """The streams and buckets that a system needs.

    Attributes:
        expected: Number of streams and buckets in a complete system.
        missing: Names of missing streams, and of missing consumers as `stream/consumer`.
        unscheduled: Names of streams that must schedule messages and do not.
    """

    expected: int
    missing: Sequence[str]
    unscheduled: Sequence[str]


@dataclass(frozen=True)
class DeadLetterKind:
    """The dead letters of a reason: their number, and sequence, explanation and subject of the newest letter.

    `seq` is 0 if the caller may only count them.
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


class NatsInspection:
    """The facts that one connection can find out about a server and a system. Made by `open_inspection`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._system = NatsSystemClient(client)

    @property
    def server(self) -> ServerFacts:
        """What the server said at connecting."""
        return ServerFacts(str(self._client._server_info.get("version", "")), self._client.max_payload)

    @property
    def system(self) -> NatsSystemClient:
        """The system on that server."""
        return self._system

    async def tenant(self) -> TenantId | None:
        """Ask the server."""
        with heeding_cancellation():
            return await ask_tenant(self._client)

    async def storage(self) -> StorageFacts | None:
        """Tell what JetStream holds; None if it is off or does not answer, or nobody does who may say.

        Raises:
            NotPermittedError: Who asks may not know.
        """
        try:
            found = await self._system.standing()
        except NotPermittedError:
            raise
        except UnavailableError:
            return None
        shares = tuple(StreamShare(one.name, one.stored_bytes, one.limit_bytes) for one in found.streams if one.limit_bytes)
        return StorageFacts(len(found.streams), found.stored_bytes, found.limit_bytes or None, shares)

    async def topology(self) -> TopologyFacts:
        """Look for every stream, bucket and shared consumer."""
        standing = await self._system.standing()
        found = {stream.name: stream for stream in standing.streams}
        missing = [name for name in STREAMS if name not in found]
        schedules = TIMERS in missing or found[TIMERS].schedules
        return TopologyFacts(len(STREAMS), [*missing, *standing.missing], [] if schedules else [TIMERS])

    async def clock_difference(self) -> timedelta | None:
        """Compare with the time that stands in the answer; half the round trip is taken for the way back."""
        asked = datetime.now(UTC)
        at = (await self._system.standing()).at
        answered = datetime.now(UTC)
        return None if at is None else at - (asked + (answered - asked) / 2)

    async def answers(self, service: str) -> bool:
        """Whether a service answers a ping (NATS ADR-32). A missing service is reported at once, without a retry."""
        with heeding_cancellation():
            try:
                await Client.request(self._client, f"$SRV.PING.{service}", b"", timeout=_PING_SECONDS)
            except (nats.errors.Error, TimeoutError, OSError):
                return False
        return True

    async def read(self) -> Sequence[StreamStats]:
        """Ask how every stream stands, and the queues that are not idle."""
        return [
            StreamStats(
                stream.name,
                stream.messages,
                stream.stored_bytes,
                tuple(
                    QueueStats(one.name, one.waiting, one.taken, one.again, one.readers, one.most_taken) for one in stream.queues
                ),
                stream.limit_bytes,
            )
            for stream in (await self._system.standing()).streams
        ]

    async def rejected_callers(self, services: Collection[str] = ()) -> RejectedCallers:
        """Read from the statistics of all replicas which callers were rejected lately, and which services did not answer."""
        rejected, missing = Counter[tuple[str, str]](), set(services)
        async for statistics in self._statistics(missing):
            with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
                read = parse_json(statistics)
                missing.discard(read["name"])
                for endpoint in read["endpoints"]:
                    for caller, kind, count in (endpoint.get("data") or {}).get(REJECTED, ()):
                        rejected[str(caller), str(kind)] += int(count)
        callers = [RejectedCaller(caller, kind, count) for (caller, kind), count in rejected.most_common()]
        return RejectedCallers(callers, sorted(missing))

    async def _statistics(self, missing: Collection[str]) -> AsyncGenerator[bytes, None]:
        """Yield the statistics of all replicas (ADR-32), until no more arrive for a moment and no service is missing."""
        inbox, end = self._client.new_inbox(), asyncio.get_running_loop().time() + _STATISTICS_SECONDS
        subscription = await self._client.subscribe(inbox)
        try:
            with heeding_cancellation(), suppress(nats.errors.TimeoutError):
                await self._client.publish("$SRV.STATS", reply=inbox)
                while True:
                    left = end - asyncio.get_running_loop().time()
                    yield (await subscription.next_msg(max(left if missing else min(left, _QUIET_SECONDS), 0.001))).data
        finally:
            await subscription.unsubscribe()

    async def callout(self) -> CalloutStatus | None:
        """Ask a replica of the auth callout whom it lets in; None if none answers, or who asks may not know."""
        requester = NatsRequester(self._client, timedelta(seconds=_PING_SECONDS))
        with suppress(IoaError):
            return await requester.request(
                (await ask_caller(self._client)).subject(subjects.CALLOUT_STATUS), AskCalloutStatus(), CalloutStatus
            )
        return None

    async def dead_letter_kinds(self) -> Sequence[DeadLetterKind]:
        """Count dead letters by reason, with the newest letter of each reason that the caller may read."""
        kinds: list[DeadLetterKind] = []
        may_read = True
        for reason, count in (await self._system.standing()).dead_letters.items():
            try:
                newest = await self._system.dead_letters.newest(reason) if may_read else None
            except (ForbiddenError, NotPermittedError):  # an observer only counts letters
                newest, may_read = None, False
            seq, why, subject = (0, "", "") if newest is None else (newest.seq, newest.why, newest.subject)
            kinds.append(DeadLetterKind(reason, count, seq, why, subject))
        return kinds


@asynccontextmanager
async def open_inspection(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[NatsInspection]:
    """Connect to a server, whatever size of messages it takes.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
    """
    async with open_connection(settings, patience=patience, any_payload=True) as client:
        yield NatsInspection(client)
