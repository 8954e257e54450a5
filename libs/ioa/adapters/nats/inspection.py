"""Looking at a server and its streams, as an `Inspection`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import nats.errors
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.reading import DirectReads
from ioa.adapters.nats.requester import NatsRequester
from ioa.adapters.nats.slowed_callers import slowed_by, slowed_of
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import DEAD, STREAMS, TIMERS
from ioa.adapters.nats.translated_errors import heeding_cancellation
from ioa.adapters.nats.whoami import ask_tenant
from ioa.errors import ForbiddenError, IoaError, NotPermittedError, UnavailableError
from ioa.ports.inspection import SEEN_BY_ALL, DeadLetterKind, ServerFacts, SlowedCaller, StorageFacts, StreamShare, TopologyFacts
from ioa.ports.stream_stats import QueueStats, StreamStats
from ioa.ports.system_client import SystemClient
from ioa.protocol import subjects
from ioa.protocol.authcallout import AskCalloutStatus, CalloutStatus
from ioa.protocol.ids import TenantId

_PING_SECONDS = 1.0
_QUIET_SECONDS = 0.5


class NatsInspection:
    """An `Inspection` over one connection. Made by `open_inspection`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = DirectReads(client)
        self._system = NatsSystemClient(client)

    @property
    def server(self) -> ServerFacts:
        """What the server said at connecting."""
        return ServerFacts(str(self._client._server_info.get("version", "")), self._client.max_payload)

    @property
    def system(self) -> SystemClient:
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
        """Whether a service answers a ping."""
        with heeding_cancellation():
            try:
                await self._client.request(f"$SRV.PING.{service}", b"", timeout=_PING_SECONDS)
            except (nats.errors.Error, TimeoutError, OSError):  # none is up, or somebody pings without end
                with suppress(IoaError, nats.errors.Error, OSError):
                    return service in {name for name, _ in map(slowed_by, await self._told(await self._slowed_subject()))}
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

    async def slowed(self) -> Sequence[SlowedCaller]:
        """Gather whom all services slow down; what all replicas see is counted once. Those of an older version tell statistics."""
        answers = map(slowed_by, await self._told(await self._slowed_subject()))
        told = [found for service, found in answers if service]  # a refusal is of none
        if not told:
            told = [slowed_of(answer) for answer in await self._told("$SRV.STATS")]
        refused: Counter[tuple[str, str]] = Counter()
        for one in (one for found in told for one in found):
            key = one.caller, one.family
            refused[key] = max(refused[key], one.refused) if one.family in SEEN_BY_ALL else refused[key] + one.refused
        return [SlowedCaller(caller, family, number) for (caller, family), number in refused.most_common()]

    async def _slowed_subject(self) -> str:
        try:
            return subjects.slowed_of(await self._system.user())
        except ForbiddenError:
            return subjects.slowed_of(None)

    async def _told(self, subject: str) -> Sequence[bytes]:
        """Ask all replicas of all services, and return what they answer, until none does for a moment."""
        inbox, told = self._client.new_inbox(), list[bytes]()
        subscription = await self._client.subscribe(inbox)
        try:
            await self._client.publish(subject, reply=inbox)
            with heeding_cancellation(), suppress(nats.errors.TimeoutError):
                while True:
                    told.append((await subscription.next_msg(_QUIET_SECONDS)).data)
        finally:
            await subscription.unsubscribe()
        return told

    async def callout(self) -> CalloutStatus | None:
        """Ask a replica of the auth callout whom it lets in; None if none answers, or who asks may not know."""
        requester = NatsRequester(self._client, timedelta(seconds=_PING_SECONDS))
        with suppress(IoaError):
            return await requester.request(subjects.CALLOUT_STATUS, AskCalloutStatus(), CalloutStatus)
        return None

    async def dead_letter_kinds(self) -> Sequence[DeadLetterKind]:
        """Count dead letters by their reason, and read the newest of each if whoever asks may."""
        kinds: list[DeadLetterKind] = []
        may_read = True
        for reason, count in (await self._system.standing()).dead_letters.items():
            try:
                newest = await self._js.get_last_msg(DEAD, subjects.dead(reason)) if may_read else None
            except NotFoundError:
                continue
            except ForbiddenError:  # an observer may only count them
                newest = None
            if newest is None:
                may_read = False
                kinds.append(DeadLetterKind(reason, count, 0, "", ""))
                continue
            headers = newest.headers or {}
            why, about = str(headers.get("Ioa-Reason", "")), str(headers.get("Ioa-Subject", ""))
            kinds.append(DeadLetterKind(reason, count, newest.seq or 0, why, about))
        return kinds


@asynccontextmanager
async def open_inspection(settings: NatsSettings, *, patience: timedelta) -> AsyncIterator[NatsInspection]:
    """Connect to a server, whatever size of messages it takes.

    Raises:
        UnavailableError: No NATS server answers within `patience`.
    """
    async with open_connection(replace(settings, asks_to_read=True), patience=patience, any_payload=True) as client:
        yield NatsInspection(client)
