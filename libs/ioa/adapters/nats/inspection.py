"""Looking at a server and its streams, as an `Inspection`."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import nats.errors
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.reading import DirectReads
from ioa.adapters.nats.requester import NatsRequester
from ioa.adapters.nats.slowed_callers import most_first, slowed_by, slowed_in_statistics
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import DEAD, STREAMS, TIMERS
from ioa.adapters.nats.whoami import ask_tenant, ask_version
from ioa.cancellation import heeding_cancellation
from ioa.errors import ForbiddenError, IoaError, NotPermittedError, UnavailableError
from ioa.ports.inspection import (
    SEEN_BY_ALL,
    DeadLetterKind,
    ServerFacts,
    SlowedCaller,
    SlowedCallers,
    StorageFacts,
    StreamShare,
    TopologyFacts,
)
from ioa.ports.stream_stats import QueueStats, StreamStats
from ioa.ports.system_client import SystemClient
from ioa.protocol import subjects
from ioa.protocol.authcallout import AskCalloutStatus, CalloutStatus
from ioa.protocol.ids import TenantId

_PING_SECONDS = 1.0
_QUIET_SECONDS = 0.5
_TELLING_SECONDS = 5.0
"""How long a service may take to say whom it slows down. Beside a flood it may be busy, and is asked just then."""
_AGAIN_SECONDS = 1.0
_Told = tuple[str, Sequence[SlowedCaller]]
"""Of which service an answer is, and whom it slows down; a refusal is of none."""


def _by_request() -> defaultdict[str, list[_Told]]:
    return defaultdict(list)


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

    async def is_authorized_anew(self) -> bool | None:
        """Ask the server."""
        with heeding_cancellation():
            return await ask_version(self._client)

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
                    return service in {name for name, _ in await self._told(await self._slowed_subject(), slowed_by)}
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

    async def slowed(self, services: Collection[str] = ()) -> SlowedCallers:
        """Gather whom all services slow down; what all replicas see is counted once. Those of an older version tell statistics."""
        told = await self._told(await self._slowed_subject(), slowed_by, services)
        if not told:
            told = await self._told("$SRV.STATS", slowed_in_statistics, services)
        refused: Counter[tuple[str, str]] = Counter()
        for one in (one for _, found in told for one in found):
            key = one.caller, one.family
            refused[key] = max(refused[key], one.refused) if one.family in SEEN_BY_ALL else refused[key] + one.refused
        heard = {service for service, _ in told}
        callers = most_first(SlowedCaller(caller, family, number) for (caller, family), number in refused.items())
        return SlowedCallers(callers, [service for service in services if service not in heard])

    async def _slowed_subject(self) -> str:
        try:
            return subjects.slowed_of(await self._system.user())
        except ForbiddenError:
            return subjects.slowed_of(None)

    async def _told(self, subject: str, read: Callable[[bytes], _Told], services: Collection[str] = ()) -> Sequence[_Told]:
        """Ask all replicas of all services, and return what they answer, until these have and none does for a moment.

        They are asked again while one of these has not answered: beside a flood a request may be lost. Of each service counts what
        it answered to one of the requests.
        """
        inbox, told, unheard = self._client.new_inbox(), defaultdict[str, defaultdict[str, list[_Told]]](_by_request), set(services)
        began = asyncio.get_running_loop().time()
        asked = 0
        subscription = await self._client.subscribe(f"{inbox}.*")
        try:
            with heeding_cancellation():
                while True:
                    past = asyncio.get_running_loop().time() - began
                    if not asked or (unheard and past >= asked * _AGAIN_SECONDS and past < _TELLING_SECONDS):
                        await self._client.publish(subject, reply=f"{inbox}.{asked}")
                        asked += 1
                    try:
                        message = await subscription.next_msg(_AGAIN_SECONDS if unheard else _QUIET_SECONDS)
                    except nats.errors.TimeoutError:
                        if unheard and past < _TELLING_SECONDS:
                            continue
                        break
                    service, callers = read(message.data)
                    if service:
                        told[service][message.subject].append((service, callers))
                        unheard.discard(service)
        finally:
            await subscription.unsubscribe()
        return [one for answers in told.values() for one in max(answers.values(), key=len)]

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
