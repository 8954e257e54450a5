"""Looking at a server and its streams, as an `Inspection`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import nats.errors
from nats.aio.client import Client
from nats.js.errors import APIError, NotFoundError

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.request_reply import NatsRequester, slowed_of
from ioa.adapters.nats.stream_stats import NatsStreamStats
from ioa.adapters.nats.system_client import NatsSystemClient
from ioa.adapters.nats.topology import CONSUMERS, DEAD, STREAMS, TIMERS
from ioa.adapters.nats.translated_errors import heeding_cancellation
from ioa.errors import IoaError
from ioa.ports.inspection import DeadLetterKind, ServerFacts, SlowedCaller, StorageFacts, StreamShare, TopologyFacts
from ioa.ports.stream_stats import StreamStats
from ioa.ports.system_client import SystemClient
from ioa.protocol import subjects
from ioa.protocol.authcallout import AskCalloutStatus, CalloutStatus

_ANSWER_SECONDS = 3.0
_PAGE = 256
"""How many streams the server lists at once."""
_PING_SECONDS = 1.0
_QUIET_SECONDS = 0.5


class NatsInspection:
    """An `Inspection` over one connection. Made by `open_inspection`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._js = client.jetstream()
        self._stats = NatsStreamStats(self._js)
        self._system = NatsSystemClient(client)

    @property
    def server(self) -> ServerFacts:
        """What the server said at connecting."""
        return ServerFacts(str(self._client._server_info.get("version", "")), self._client.max_payload)

    @property
    def system(self) -> SystemClient:
        """The system on that server."""
        return self._system

    async def storage(self) -> StorageFacts | None:
        """Ask what JetStream holds; None if it is off or does not answer."""
        try:
            account = await self._js.account_info()
            streams = [stream for at in range(0, account.streams, _PAGE) for stream in await self._js.streams_info(offset=at)]
        except (nats.errors.Error, TimeoutError, APIError):
            return None
        limit = account.limits.max_storage
        bound = ((str(one.config.name), one.state.bytes, one.config.max_bytes or 0) for one in streams)
        shares = tuple(StreamShare(*share) for share in bound if share[-1] > 0)
        return StorageFacts(account.streams, account.storage, limit if limit > 0 else None, shares)

    async def topology(self) -> TopologyFacts:
        """Look for every stream, bucket and shared consumer."""
        found = {stream.config.name: stream.config for stream in await self._js.streams_info()}
        missing = [name for name in STREAMS if name not in found]
        missing += [
            f"{stream}/{name}"
            for stream, name, _ in CONSUMERS
            if stream not in missing and await _is_missing(self._js.consumer_info, stream, name)
        ]
        schedules = TIMERS in missing or found[TIMERS].allow_msg_schedules
        return TopologyFacts(len(STREAMS), missing, [] if schedules else [TIMERS])

    async def clock_difference(self) -> timedelta | None:
        """Compare with the time that stands in JetStream's answers; half the round trip is taken for the way back."""
        asked = datetime.now(UTC)
        answer = await self._client.request(f"$JS.API.STREAM.INFO.{DEAD}", b"", timeout=_ANSWER_SECONDS)
        answered = datetime.now(UTC)
        written = json.loads(answer.data).get("ts")
        if written is None:
            return None
        # The server writes nanoseconds, which are more digits than Python reads.
        at = datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", str(written)))
        return at - (asked + (answered - asked) / 2)

    async def answers(self, service: str) -> bool:
        """Whether a service answers a ping."""
        with heeding_cancellation():
            try:
                await self._client.request(f"$SRV.PING.{service}", b"", timeout=_PING_SECONDS)
            except (nats.errors.Error, TimeoutError, OSError):
                return False
        return True

    async def read(self) -> Sequence[StreamStats]:
        """Ask how every stream and queue stands."""
        return await self._stats.read()

    async def slowed(self) -> Sequence[SlowedCaller]:
        """Gather the statistics of all services, until none comes for a moment."""
        refused: Counter[tuple[str, str]] = Counter()
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox)
        try:
            await self._client.publish("$SRV.STATS", reply=inbox)
            with heeding_cancellation(), suppress(nats.errors.TimeoutError):
                while True:
                    for one in slowed_of((await subscription.next_msg(_QUIET_SECONDS)).data):
                        refused[one.caller, one.family] += one.refused
        finally:
            await subscription.unsubscribe()
        return [SlowedCaller(caller, family, number) for (caller, family), number in refused.most_common()]

    async def callout(self) -> CalloutStatus | None:
        """Ask a replica of the auth callout whom it lets in; None if none answers, or who asks may not know."""
        requester = NatsRequester(self._client, timedelta(seconds=_PING_SECONDS))
        with suppress(IoaError):
            return await requester.request(subjects.CALLOUT_STATUS, AskCalloutStatus(), CalloutStatus)
        return None

    async def dead_letter_kinds(self) -> Sequence[DeadLetterKind]:
        """Count dead letters by their reason, and read the newest of each if whoever asks may."""
        info = await self._js.stream_info(DEAD, subjects_filter=subjects.ANY_DEAD)
        kinds: list[DeadLetterKind] = []
        may_read = True
        for subject, count in (info.state.subjects or {}).items():
            reason = subject.rpartition(".")[2]
            try:
                newest = await self._js.get_last_msg(DEAD, subject) if may_read else None
            except NotFoundError:
                continue
            except nats.errors.TimeoutError:  # an observer may only count them, and is not answered
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
    async with open_connection(settings, patience=patience, any_payload=True) as client:
        yield NatsInspection(client)


async def _is_missing(look: Callable[..., Awaitable[object]], *names: str) -> bool:
    try:
        await look(*names)
    except NotFoundError:
        return True
    return False
