"""Requests and their answers over NATS micro services (ADR-32): serving them and making them.

An error keeps its class on the way: code, message and hint travel in the reply's headers. How long the caller will wait travels in
the request's, so that nobody works for one who has gone. Nobody gets more than his share: what each caller may ask is counted
(`ioa.quotas`), and what there is no room for at once is answered in turns.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter as TallyOf
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, partial
from typing import Any, TypeVar, cast

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Endpoint as MicroEndpoint
from nats.micro.service import EndpointConfig, EndpointStats
from nats.micro.service import Service as MicroService
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.connections import NatsTraceTeller
from ioa.adapters.nats.headers import header_bytes
from ioa.adapters.nats.in_turns import asking
from ioa.adapters.nats.listening import Listener
from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.adapters.nats.translated_errors import heeding_cancellation
from ioa.errors import (
    ForbiddenError,
    IoaError,
    NotPermittedError,
    PayloadTooLargeError,
    RateLimitedError,
    UnavailableError,
    from_wire,
    row_of,
)
from ioa.ports.inspection import SlowedCaller
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_ANSWER_BYTES, check_size, decode, encode, receive
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.protocol.model import Model
from ioa.protocol.subjects import kind_of
from ioa.quotas import RATES, Admitted, Buckets, Family, Holding, Rate, once

_CODE, _MESSAGE, _HINT = "Nats-Service-Error-Code", "Nats-Service-Error", "Ioa-Hint"
_RETRY_AFTER = "Ioa-Retry-After"
"""In how many ms a caller is to come back that asks too often."""
_DISMISSED, _DISMISSED_SECONDS = Rate(1_000, 1_000), 5.0
"""How often those who have been told when to come back, and go on regardless, are told again, all together, and what: the server
keeps a request between accounts, with its reply subject of up to 32 kB, until it is answered or long afterwards."""
_NO_ROOM_SECONDS = 1.0
"""When somebody is to come back for whom too many requests wait already."""
_PATIENCE = "Ioa-Patience"
"""How many ms the caller of a request waits for the answer."""
_USUAL_PATIENCE = timedelta(seconds=5)
"""How long a caller waits that does not say; headers would cost every message some microseconds."""
_FIRST_PART = 0.1
"""For which part of his patience somebody waits for the first answer to what may be asked twice. A server that reads its
configuration anew loses answers that cross accounts, and tells so to who answered alone."""
FILE_TIMEOUT = timedelta(seconds=30)
"""How long to wait for a piece of a file: those of others are served in between."""

USUAL_BYTES = 65_536
"""What a request may have whose model holds no long texts, files or many things. What is larger is refused unread: a megabyte of
small elements takes hundreds of ms to read, whatever it was sent as."""

OF_ANYBODY = 250
"""How many requests in half a second a replica takes on a subject that users and observers share."""
_SHARED_PART, _SHARED_SECONDS, _SHARED_AT_ONCE = 0.25, 0.5, 4
"""Which part of its time a replica gives to those subjects, after so many seconds at once, and how many it answers side by side.
One request may cost a thousand times what another does."""
_TOLD_AT_ONCE, _TOLD_EVERY_SECONDS = 50, 0.5
"""How often a service tells of itself within how many seconds, on each subject."""
_USUAL_PAUSE = timedelta(seconds=1)
"""How long a caller that asked too often waits if it is told nothing that can be read."""
_SERVICE, _SLOWED, _SLOWED_TOLD, _CALLER_CHARS = "service", "slowed", 10, 64
_TOLD_CHARS = 2_000
"""How much is told of what was wrong."""
_RATE_LIMITED = row_of(RateLimitedError).wire_code

_NOT_PERMITTED_HINT = (
    "IOA_NATS_SEED names whose it is. Users, observers and admins see who there is and how all stands, users and admins read goals,"
    " auditors the audit log, agents nothing of it. One that could before may again after `ioa credentials upgrade`."
)

_log = structlog.get_logger(__name__)
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

requests = Counter(
    "ioa_requests_total",
    "Requests answered, by kind of subject and `ok` or the error's code; `overdue` were dropped, since their callers had gone, as"
    " were those of `rate_limited` whose callers had just been told",
    ["subject", "code"],
)
request_seconds = Histogram("ioa_request_duration_seconds", "Time to answer a request", ["subject"], buckets=_BUCKETS)
asked = Counter("ioa_client_requests_total", "Requests made, by kind of subject and `ok` or the error's code", ["subject", "code"])
asked_seconds = Histogram("ioa_client_request_duration_seconds", "Time until a request was answered", ["subject"], buckets=_BUCKETS)


@dataclass(frozen=True)
class HeadedAnswer:
    """What answers a request, with headers of its own."""

    data: bytes
    headers: Mapping[str, str]


Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Gets a request's subject and payload; returns the answer's."""
HeadedHandler = Callable[[str, bytes], Awaitable[bytes | HeadedAnswer]]
"""Returns an answer with headers, or its payload alone."""
Asked = TypeVar("Asked", bound=Model)
Reply = TypeVar("Reply", bound=Model)


@dataclass(frozen=True)
class ServiceEndpoint:
    """A subject that is answered.

    Attributes:
        is_own: Whether it is not shared out: every replica that listens to the subject answers, which is one alone if the subject
            names it. It is not announced (ADR-32).
        lane: Says by the subject of a request whose load it is. Each lane has a share of what is answered at once, and none waits
            for another; endpoints may share lanes. Without it each caller is a lane, or, where nobody is named, the endpoint's
            requests are one without a bound.
        caller_at: Which token of the subject names who asks. What one caller may ask, and may keep waiting, is bounded; without it
            the subject names nobody.
        family: With what else a caller's requests are counted.
        side_by_side: How many of one caller are answered at once, if fewer than of others: of what takes much memory, or bandwidth.
        for_many: Callers that ask for many users, each of whom is bounded where he asks them: their requests are not bounded here.
        at_most: How many requests a replica takes in half a second, where the subject names nobody; None: as many as come. Such
            subjects share a part of its time, and take turns by who asks, which the server tells.
        counts: Says as how many a request counts. With it what one caller may ask is bounded where the subject names nobody, and
            it counts as well for the processor time that its answer takes.
        searches: Says whether a request has others search for it, which hold up the rest on that subject meanwhile: it counts for
            that time, too.
        max_bytes: What a request may have; a larger one is refused unread.
    """

    name: str
    subject: str
    handler: HeadedHandler
    is_own: bool = False
    lane: Callable[[str], str] | None = None
    caller_at: int | None = None
    family: Family = Family.OTHERS
    side_by_side: int | None = None
    for_many: Collection[str] = ()
    at_most: int | None = None
    counts: Callable[[bytes], int] | None = None
    searches: Callable[[bytes], bool] | None = None
    max_bytes: int = USUAL_BYTES


@dataclass(frozen=True)
class Bounds:
    """How much a replica takes on.

    Attributes:
        max_concurrent: How many requests are answered side by side.
        waiting: How many more may wait for that.
        waiting_bytes: How much memory those may take.
        lane_max_concurrent: How many of one lane are answered side by side.
        lane_waiting: How many of one lane may wait.
        caller_waiting: How many of one caller may wait.
        caller_waiting_bytes: How much memory those may take.
        rates: How often one caller may ask, by family.
    """

    max_concurrent: int = 1_000
    waiting: int = 50_000
    waiting_bytes: int = 128_000_000
    lane_max_concurrent: int = 64
    lane_waiting: int = 4_000
    caller_waiting: int = 64
    caller_waiting_bytes: int = 1_000_000
    rates: Mapping[Family, Rate] = field(default_factory=lambda: RATES)


def answer(kind: type[Asked], method: Callable[[Asked], Awaitable[Model]]) -> Handler:
    """Make a handler of a method that takes a decoded request and returns the answer."""

    async def handle(_subject: str, data: bytes) -> bytes:
        return encode(await method(receive(kind, data)))

    return handle


def answer_as(kind: type[Asked], method: Callable[[Asked], Awaitable[Model]], claimed: Callable[[Asked], AgentId]) -> Handler:
    """Make a handler of a method whose request says who asks; one who asks under another name than its subject's is refused."""

    async def handle(subject: str, data: bytes) -> bytes:
        request, caller = receive(kind, data), subjects.parse_caller(subject)
        if claimed(request) != caller:
            raise ForbiddenError(f"{caller} may not ask as {claimed(request)}.")
        return encode(await method(request))

    return handle


def answer_user(kind: type[Asked], method: Callable[[UserId, Asked], Awaitable[Model]]) -> Handler:
    """Make a handler of a method that is told which user asks, as the request's subject says."""

    async def handle(subject: str, data: bytes) -> bytes:
        return encode(await method(UserId(subjects.parse_caller(subject)), receive(kind, data)))

    return handle


def answer_admin(kind: type[Asked], method: Callable[[UserId, Asked], Awaitable[Model]]) -> Handler:
    """Make a handler of a method that is told for which user an admin asks, as the request's subject says."""

    async def handle(subject: str, data: bytes) -> bytes:
        return encode(await method(subjects.parse_served(subject), receive(kind, data)))

    return handle


def answer_member(
    kind: type[Asked], method: Callable[[Asked], Awaitable[Model]], claimed: Callable[[Asked], tuple[PoolId, AgentId]]
) -> Handler:
    """Make a handler of a method whose request says who asks, and of which pool; both are its subject's, or it is refused."""

    async def handle(subject: str, data: bytes) -> bytes:
        request, (pool, caller) = receive(kind, data), subjects.parse_member(subject)
        if claimed(request) != (pool, caller):
            other_pool, other = claimed(request)
            raise ForbiddenError(f"{caller} of the pool {pool} may not ask as {other} of the pool {other_pool}.")
        return encode(await method(request))

    return handle


@asynccontextmanager
async def open_service(  # noqa: PLR0913  # all that there is
    client: Client,
    name: str,
    description: str,
    version: str,
    endpoints: Sequence[ServiceEndpoint],
    *,
    bounds: Bounds = Bounds(),
    known: Callable[[], Iterable[str]] = tuple,
    slowed: Callable[[str, Family], None] = lambda _caller, _family: None,
    also_slowed: Callable[[], Sequence[SlowedCaller]] = tuple,
) -> AsyncIterator[None]:
    """Answer requests as one replica of a micro service; on leaving, finish those in flight.

    All replicas share a queue group, so each request reaches one of them. Requests are answered side by side; those for which
    there is no room wait, the lanes in turn, and beyond the bounds whoever asks is told to come again. One that has waited here for
    longer than its caller will is dropped. Whose requests are refused for their number stands in the statistics of the first
    endpoint (`slowed_of`); who goes on regardless is closed out for a while (`listening`). Each replica tells the same on a
    subject that names who asks: on those of the statistics anybody may ask so often that nobody else is heard.

    Args:
        client: Where requests come from.
        name: That of the service.
        description: What it is for.
        version: Its version.
        endpoints: What it answers.
        bounds: How much this replica takes on.
        known: Returns who is to be served while somebody else floods, besides those who have asked before.
        slowed: Is told of a caller that asks too often, once in a while.
        also_slowed: Returns who is slowed down by other means, to be told of first in the same statistics.
    """
    async with asyncio.TaskGroup() as group:
        traces = NatsTraceTeller(client)
        answering, listeners = _Answering(group, bounds, slowed, traces.hear), list[Listener]()
        told_by = next((endpoint.name for endpoint in endpoints if not endpoint.is_own), "")

        def tell(stats: EndpointStats) -> object:
            stats.num_requests = answering.taken[stats.name]
            return _told(also_slowed(), answering.slowed()) if stats.name == told_by else None

        service = await add_service(
            client, name=name, description=description, version=version, queue_group=name, metadata={}, stats_handler=tell
        )

        async def tell_slowed(_subject: str, _data: bytes) -> bytes:
            return json.dumps({_SERVICE: name} | _told(also_slowed(), answering.slowed())).encode()

        to_slowed = ServiceEndpoint("slowed", subjects.ANY_SLOWED, tell_slowed, is_own=True, caller_at=subjects.CALLER_AT)
        telling = [group.create_task(_bound_telling(client, service)), group.create_task(traces.follow())]

        def everybody() -> Iterable[str]:
            return {*known(), *answering.callers()}

        for endpoint in (*endpoints, to_slowed):
            queue = service.id if endpoint.is_own else name
            listener = Listener(client, endpoint.subject, queue, endpoint.caller_at, everybody, group, endpoint.at_most)
            await listener.open(partial(answering.take, endpoint, listener))
            listeners.append(listener)
            if not endpoint.is_own:
                service._endpoints.append(_Announced(service, endpoint, name))
        try:
            yield
        finally:
            for task in telling:
                task.cancel()
            try:
                for listener in listeners:
                    await listener.aclose()
                await service.stop()
            finally:
                answering.close()


async def _bound_telling(client: Client, service: MicroService) -> None:
    """Have what the service tells of itself (`$SRV.…`) asked so often at a time at most, for ever; the server drops what is beyond.

    Those subjects name no caller, and whoever may see that everything runs may ask them as fast as he can.
    """
    standing = service._subscriptions
    for subscription in standing.values():
        await subscription.unsubscribe(limit=_TOLD_AT_ONCE)
    while True:
        await asyncio.sleep(_TOLD_EVERY_SECONDS)
        for key, used in standing.items():
            if used._received >= _TOLD_AT_ONCE:
                with suppress(nats.errors.Error, OSError):
                    standing[key] = await client.subscribe(used.subject, cb=used._cb)
                    await standing[key].unsubscribe(limit=_TOLD_AT_ONCE)


class _Announced(MicroEndpoint):
    """An endpoint as other programs see it (ADR-32); its requests come by a `Listener`."""

    def __init__(self, service: MicroService, endpoint: ServiceEndpoint, queue: str) -> None:
        super().__init__(service, EndpointConfig(endpoint.name, _never, queue, endpoint.subject))

    async def _start(self) -> None:
        """Subscribe to nothing."""

    async def _stop(self) -> None:
        """Leave nothing."""


async def _never(request: Request) -> None:
    raise AssertionError(f"{request.subject} is heard by a listener")


@dataclass(frozen=True)
class _Waiting:
    """A request for which there was no room when it came."""

    endpoint: ServiceEndpoint
    caller: str
    request: Request
    until: float
    """When its caller has gone, by the loop's clock."""


class _Turns:
    """The lanes that wait for their turns at a part of what is answered at once, and at a part of the time."""

    def __init__(self, most: int, part: float | None = None) -> None:
        self.most = most
        self.part = part
        self.in_flight = 0
        self.lanes: deque[_Lane] = deque()
        self.waking: asyncio.TimerHandle | None = None
        self._full_at = 0.0

    def spend(self, seconds: float, now: float) -> None:
        """Take so much off the time that is left."""
        if self.part is not None:
            self._full_at = max(self._full_at, now) + seconds / self.part

    def wait(self, now: float) -> float:
        """In how many seconds there is time again; 0 if there is."""
        return 0.0 if self.part is None else max(0.0, self._full_at - now - _SHARED_SECONDS / self.part)


class _Lane:
    """The requests of one load. `in_turn` says that some wait for which the lane has room, so that the others' turns come first."""

    __slots__ = ("in_flight", "in_turn", "key", "most", "turns", "waiting")

    def __init__(self, key: str, most: int, turns: _Turns) -> None:
        self.key = key
        self.most = most
        self.turns = turns
        self.in_flight = 0
        self.in_turn = False
        self.waiting: deque[_Waiting] = deque()


class _Kept:
    """What waits of one caller."""

    __slots__ = ("bytes", "number")

    def __init__(self) -> None:
        self.number = self.bytes = 0


class _Answering:
    """Answers requests side by side, within bounds, and lets each lane have its turn."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        bounds: Bounds,
        slowed: Callable[[str, Family], None],
        is_of_nobody: Callable[[Msg], bool],
    ) -> None:
        self._group = group
        self._bounds = bounds
        self._slowed = slowed
        self._is_of_nobody = is_of_nobody
        self._loop = asyncio.get_running_loop()
        self._waiting = 0
        self._waiting_bytes = 0
        self._lanes: dict[str, _Lane] = {}
        self._kept: dict[str, _Kept] = {}
        self._buckets = Buckets(bounds.rates)
        self._holding = Holding()
        self._turns = _Turns(bounds.max_concurrent)
        self._shared = _Turns(_SHARED_AT_ONCE, _SHARED_PART)
        self._closed = False
        self._dismissed = Buckets({Family.OTHERS: _DISMISSED})
        self.taken: TallyOf[str] = TallyOf()
        """How many requests were taken, by endpoint."""

    def callers(self) -> Iterable[str]:
        """Return who has asked before."""
        return self._buckets.callers()

    def take(self, endpoint: ServiceEndpoint, listener: Listener, message: Msg) -> None:
        """Answer a request as soon as there is room. One that comes after all is closed was not taken."""
        if self._closed or self._rests_from(message, listener):
            return
        caller = ""
        if endpoint.caller_at is not None:
            caller = message.subject.split(".")[endpoint.caller_at]
        elif endpoint.at_most is not None:
            caller = _asker(message)
        is_bounded = endpoint.caller_at is not None or (caller and endpoint.counts is not None)
        if is_bounded and caller not in endpoint.for_many:
            counts = once if endpoint.counts is None else partial(endpoint.counts, message.data)
            size = len(message.data) + header_bytes(message.headers)
            judged = self._buckets.judge(caller, endpoint.family, self._loop.time(), size, counts)
            if not isinstance(judged, Admitted):
                if judged.is_flood and endpoint.caller_at is not None:
                    listener.close_out(caller)
                self._refuse(endpoint, caller, message, judged.retry_after, is_first=judged.is_first)
                return
        self.taken[endpoint.name] += 1
        request = Request(message)
        lane = self._lane(endpoint, caller, request.subject)
        if self._has_room(lane.turns) and lane.in_flight < lane.most and not lane.waiting:
            self._start(lane, endpoint, caller, request)
        elif not self._may_keep_more(caller, request):
            self._refuse(endpoint, caller, message, _NO_ROOM_SECONDS, is_first=False)
        elif self._has_room_to_wait(endpoint, lane, request):
            self._keep(caller, 1, len(request.data))
            lane.waiting.append(_Waiting(endpoint, caller, request, self._loop.time() + _patience(request)))
            self._give_turn(lane)
            self._serve(lane.turns)
        else:
            self._group.create_task(_respond_error(request, UnavailableError(f"Too many requests wait for {endpoint.name}.")))

    def _rests_from(self, message: Msg, listener: Listener) -> bool:
        """Stop listening for a moment if the server has written a message itself; whether it has, so that nobody asks."""
        is_one = self._is_of_nobody(message)
        if is_one:
            listener.rest()
        return is_one

    def slowed(self) -> Sequence[SlowedCaller]:
        """Return whose requests were refused lately for their number."""
        found = self._buckets.slowed(self._loop.time())
        return [SlowedCaller(caller, family.value, number) for (caller, family), number in found.items()]

    def close(self) -> None:
        """Take nothing more. The task group is about to end, and refuses tasks by an error that would end nats-py's reading."""
        self._closed = True
        if self._shared.waking is not None:
            self._shared.waking.cancel()

    def _refuse(self, endpoint: ServiceEndpoint, caller: str, message: Msg, retry_after: float | None, *, is_first: bool) -> None:
        """Tell a caller when to come back; one that was told often enough is told in a hurry, or not at all."""
        _answered(endpoint.subject, _RATE_LIMITED).inc()
        if is_first:
            _log.warning("caller_slowed_down", caller=caller[:_CALLER_CHARS], family=endpoint.family.value)
            self._slowed(caller, endpoint.family)
        if retry_after is None and isinstance(self._dismissed.judge("", Family.OTHERS, self._loop.time()), Admitted):
            retry_after = _DISMISSED_SECONDS
        if retry_after is not None:
            error = RateLimitedError(
                f"{caller} asks too often for {endpoint.name}.", retry_after=timedelta(seconds=retry_after), hint="Come back later."
            )
            self._group.create_task(_respond_error(Request(message), error))

    def _may_keep_more(self, caller: str, request: Request) -> bool:
        kept = self._kept.get(caller)
        if not caller or kept is None:
            return True
        size = kept.bytes + len(request.data)
        return kept.number < self._bounds.caller_waiting and size <= self._bounds.caller_waiting_bytes

    def _keep(self, caller: str, number: int, size: int) -> None:
        """Count what waits, or, with numbers below zero, what waits no more."""
        self._waiting += number
        self._waiting_bytes += size
        if caller:
            kept = self._kept.get(caller) or self._kept.setdefault(caller, _Kept())
            kept.number += number
            kept.bytes += size
            if not kept.number:
                del self._kept[caller]

    def _lane(self, endpoint: ServiceEndpoint, caller: str, subject: str) -> _Lane:
        if endpoint.lane is not None:
            key, most = endpoint.lane(subject), self._bounds.lane_max_concurrent
        elif endpoint.side_by_side is not None and caller not in endpoint.for_many:
            key, most = f"caller {caller} of {endpoint.name}", endpoint.side_by_side
        elif caller:
            key, most = f"caller {caller}", self._bounds.lane_max_concurrent
        else:
            key, most = f"endpoint {endpoint.name}", self._bounds.max_concurrent
        turns = self._turns if endpoint.at_most is None else self._shared
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key, most, turns)
        return lane

    def _has_room(self, turns: _Turns) -> bool:
        return turns.in_flight < turns.most and not turns.wait(self._loop.time())

    def _has_room_to_wait(self, endpoint: ServiceEndpoint, lane: _Lane, request: Request) -> bool:
        is_bounded = endpoint.lane is not None or endpoint.caller_at is not None or endpoint.at_most is not None
        most_of_lane = self._bounds.lane_waiting if is_bounded else self._bounds.waiting
        return (
            self._waiting < self._bounds.waiting
            and len(lane.waiting) < most_of_lane
            and self._waiting_bytes + len(request.data) <= self._bounds.waiting_bytes
        )

    def _give_turn(self, lane: _Lane) -> None:
        """Put a lane in line, behind the others, if it has something to do and may do it."""
        if lane.waiting and lane.in_flight < lane.most and not lane.in_turn:
            lane.in_turn = True
            lane.turns.lanes.append(lane)

    def _start(self, lane: _Lane, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        lane.turns.in_flight += 1
        lane.in_flight += 1
        self._group.create_task(self._answer(lane, endpoint, caller, request))

    async def _answer(self, lane: _Lane, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        try:
            if lane.turns.part is None:
                await self._answer_one(endpoint, caller, request)
            else:
                await self._answer_in_part(lane.turns, endpoint, caller, request)
        finally:
            lane.turns.in_flight -= 1
            lane.in_flight -= 1
            this = asyncio.current_task()
            if this is not None and not this.cancelling():  # else the service has failed, and its task group refuses tasks
                self._go_on(lane)

    async def _answer_one(self, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        """Answer a request, and charge who asked, if that counts, with its bytes and with the time that it took itself.

        The time of most, which are of families where it does not count, is not looked at: that would cost more than it tells.
        """
        if not caller or caller in endpoint.for_many:
            await _answer(endpoint, request)
        elif self._bounds.rates[endpoint.family].second_counts is None:
            size = await _answer(endpoint, request)
            if size is not None:
                self._buckets.charge(caller, endpoint.family, self._loop.time(), answered_bytes=size)
        else:
            answering, size = _OwnTime(_answer(endpoint, request)), None
            try:
                size = await answering
            finally:
                self._buckets.charge(caller, endpoint.family, self._loop.time(), answering.seconds, size or 0)

    async def _answer_in_part(self, turns: _Turns, endpoint: ServiceEndpoint, caller: str, request: Request) -> None:
        """Answer a request of those that have a part of the time, and charge who asked with what it took itself."""
        asked_at, answering = self._idle(), _OwnTime(_answer(endpoint, request))
        try:
            size = await answering
            held = 0.0 if endpoint.counts is None else answering.seconds
            if endpoint.searches is not None:
                waited = self._holding.took(request.subject, asked_at, self._idle())
                held += waited if endpoint.searches(request.data) else 0.0
            if size is not None and caller:
                self._buckets.charge(caller, endpoint.family, self._loop.time(), held, size)
        finally:
            turns.spend(answering.seconds, self._loop.time())

    def _idle(self) -> float:
        """Return a time that goes on only while nothing is worked on here."""
        return self._loop.time() - time.thread_time()

    def _go_on(self, lane: _Lane) -> None:
        """Begin what there is room for now that a request of a lane is answered."""
        self._give_turn(lane)
        self._serve(lane.turns)
        if not lane.in_flight and not lane.waiting:
            self._lanes.pop(lane.key, None)

    def _serve(self, turns: _Turns) -> None:
        """Answer the lanes in turn while there is room, and go on as soon as there is time again."""
        while turns.lanes and self._has_room(turns):
            self._serve_lane(turns.lanes.popleft())
        if turns.lanes and turns.waking is None and (wait := turns.wait(self._loop.time())):
            turns.waking = self._loop.call_later(wait, self._wake, turns)

    def _wake(self, turns: _Turns) -> None:
        turns.waking = None
        if not self._closed:
            self._serve(turns)

    def _serve_lane(self, lane: _Lane) -> None:
        """Answer the first one of a lane that is still waited for."""
        lane.in_turn, now = False, self._loop.time()
        while lane.waiting:
            first = lane.waiting.popleft()
            self._keep(first.caller, -1, -len(first.request.data))
            if first.until > now:
                self._start(lane, first.endpoint, first.caller, first.request)
                break
            _answered(first.endpoint.subject, "overdue").inc()
        self._give_turn(lane)


def _asker(message: Msg) -> str:
    """Who asks on a subject that many share, as the server tells where users have keys; empty where they have none."""
    try:
        told = json.loads((message.headers or {})[SHOWN_ASKER])
        return f"{told['acc']} {told['user']}"
    except (KeyError, ValueError, TypeError):
        return ""


def _patience(request: Request) -> float:
    """Read for how many seconds the caller waits; as long as usual if it does not say, or says nothing that can be read."""
    try:
        return float((request.headers or {})[_PATIENCE]) / 1_000
    except (KeyError, ValueError):
        return _USUAL_PATIENCE.total_seconds()


class _OwnTime:
    """Awaits something, and counts the processor time that it takes itself: what others do while it waits is theirs."""

    __slots__ = ("_awaited", "seconds")

    def __init__(self, awaited: Coroutine[Any, Any, int | None]) -> None:
        self._awaited = awaited
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, int | None]:
        step = partial(self._awaited.send, None)
        while True:
            began = time.thread_time()
            try:
                waits_for = step()
            except StopIteration as done:
                return cast(int | None, done.value)
            finally:
                self.seconds += time.thread_time() - began
            try:
                step = partial(self._awaited.send, (yield waits_for))
            except BaseException as error:  # noqa: BLE001 - a cancellation, too, is its own to take
                step = partial(self._awaited.throw, error)


async def _answer(endpoint: ServiceEndpoint, request: Request) -> int | None:
    """Answer a request, and return how many bytes the answer has; None if that was an error."""
    started = time.perf_counter()
    code, size = "ok", 0
    try:
        check_size(request.data, endpoint.max_bytes, f"This request for {endpoint.name}")
        answered = await endpoint.handler(request.subject, request.data)
        if isinstance(answered, HeadedAnswer):
            size = len(answered.data)
            await request.respond(answered.data, dict(answered.headers))
        else:
            size = len(answered)
            await request.respond(answered)
    except IoaError as error:
        row = row_of(error)
        code = row.wire_code
        getattr(_log, row.level)("request_failed", endpoint=endpoint.name, code=code, error=error.message)
        await _respond_error(request, error)
    except nats.errors.MaxPayloadError:
        code = row_of(PayloadTooLargeError).wire_code
        _log.error("answer_too_large", endpoint=endpoint.name)
        await _respond_error(request, PayloadTooLargeError(f"The answer of {endpoint.name} is larger than the server allows."))
    except (nats.errors.Error, OSError) as error:
        code = "unanswered"
        _log.warning("request_unanswered", endpoint=endpoint.name, error=str(error) or type(error).__name__)
    except Exception:  # noqa: BLE001 - whoever asks gets an answer, the log the bug
        code = row_of(Exception).wire_code
        _log.exception("request_crashed", endpoint=endpoint.name)
        await _respond_error(request, IoaError(f"{endpoint.name} failed; its log says why."))
    finally:
        _answered(endpoint.subject, code).inc()
        _took(endpoint.subject).observe(time.perf_counter() - started)
    return size if code == "ok" else None


@cache
def _answered(subject: str, code: str) -> Counter:
    return requests.labels(kind_of(subject), code)


@cache
def _took(subject: str) -> Histogram:
    return request_seconds.labels(kind_of(subject))


async def _respond_error(request: Request, error: IoaError) -> None:
    try:
        headers = {_HINT: _one_line(error.hint)} if error.hint else {}
        if isinstance(error, RateLimitedError) and error.retry_after is not None:
            headers[_RETRY_AFTER] = str(math.ceil(error.retry_after / timedelta(milliseconds=1)))
        await request.respond_error(row_of(error).wire_code, _one_line(error.message), headers=headers)
    except (nats.errors.Error, OSError, ValueError) as failure:
        _log.warning("request_unanswered", error=str(failure) or type(failure).__name__)


def _one_line(text: str) -> str:
    return " ".join(text[:_TOLD_CHARS].split())


def _told(*found: Sequence[SlowedCaller]) -> dict[str, list[list[str | int]]]:
    """Tell of some of those who are slowed down, of each kind those most of whose requests were refused."""
    most = [one for kind in found for one in sorted(kind, key=lambda one: -one.refused)[:_SLOWED_TOLD]]
    return {_SLOWED: [[one.caller, one.family, one.refused] for one in most]}


def slowed_of(stats: bytes) -> list[SlowedCaller]:
    """Read off what a service tells of itself (`$SRV.STATS`) whose requests it refused lately for their number."""
    try:
        told = [endpoint["data"] for endpoint in json.loads(stats)["endpoints"] if _SLOWED in (endpoint.get("data") or {})]
        return [one for found in told for one in _slowed(found)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def slowed_by(answer: bytes) -> tuple[str, list[SlowedCaller]]:
    """Read off what a replica answers who asks whom it slows down (`subjects.slowed_of`): of which service it is, and whom."""
    try:
        told = json.loads(answer)
        return str(told[_SERVICE]), _slowed(told)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", []


def _slowed(told: Mapping[str, Any]) -> list[SlowedCaller]:
    return [SlowedCaller(str(caller), str(family), int(number)) for caller, family, number in told[_SLOWED]]


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    try:
        return timedelta(milliseconds=float(headers[_RETRY_AFTER]))
    except (KeyError, ValueError, OverflowError):
        return None


class NatsRequester:
    """Make requests to services."""

    def __init__(self, client: Client, timeout: timedelta = _USUAL_PATIENCE) -> None:
        self._client = client
        self._timeout = timeout

    async def request(
        self, subject: str, request: Model, reply: type[Reply], *, timeout: timedelta | None = None, is_repeatable: bool = False
    ) -> Reply:
        """Ask and wait for the answer; where whoever asks does so too often, wait for as long as it is told, and ask again.

        Args:
            subject: Where it is answered.
            request: What is asked.
            reply: What the answer is.
            timeout: How long to wait for it.
            is_repeatable: Whether to do it twice is to do it once. It is asked a second time then, when a tenth of the time has
                passed without an answer: one may be lost on its way.

        Raises:
            UnavailableError: Nobody serves the subject, or nobody answered in time.
            RateLimitedError: It was asked too often, again and again for as long as an answer is waited for.
            IoaError: What the service reported, as the class it was raised as.
        """
        message = await self.ask(subject, encode(request), timeout=timeout, is_repeatable=is_repeatable)
        return decode(reply, message.data, max_payload_bytes=MAX_ANSWER_BYTES)

    async def ask(self, subject: str, data: bytes, *, timeout: timedelta | None = None, is_repeatable: bool = False) -> Msg:
        """Do the same with what is written already, and return the answer as it came.

        Raises:
            IoaError: As `request` does.
        """
        kind, code, started = kind_of(subject), "ok", time.perf_counter()
        try:
            return await self._ask_until_admitted(subject, data, timeout or self._timeout, is_repeatable)
        except IoaError as error:
            code = row_of(error).wire_code
            raise
        except asyncio.CancelledError:
            code = "cancelled"
            raise
        finally:
            asked.labels(kind, code).inc()
            asked_seconds.labels(kind).observe(time.perf_counter() - started)

    async def _ask_until_admitted(self, subject: str, data: bytes, timeout: timedelta, is_repeatable: bool) -> Msg:
        until = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                async with asking(self._client):
                    return await self._ask_for_answer(subject, data, timeout, is_repeatable)
            except RateLimitedError as error:
                pause = (error.retry_after or _USUAL_PAUSE).total_seconds()
                if time.monotonic() + pause > until:
                    raise
            await asyncio.sleep(pause)

    async def _ask_for_answer(self, subject: str, data: bytes, timeout: timedelta, is_repeatable: bool) -> Msg:
        try:
            message = await self._ask(subject, data, timeout, is_repeatable=is_repeatable)
        except nats.errors.NoRespondersError:
            raise UnavailableError(f"Nobody serves {subject}.", hint="Is the service running? `ioa doctor` tells.") from None
        except nats.errors.MaxPayloadError:
            raise PayloadTooLargeError(f"What was to be asked of {subject} is larger than the server allows.") from None
        except (nats.errors.Error, TimeoutError, OSError) as error:
            if may_not_publish(self._client, subject):
                raise NotPermittedError(f"This credential may not ask for {kind_of(subject)}.", hint=_NOT_PERMITTED_HINT) from None
            raise UnavailableError(f"{subject} did not answer ({str(error) or type(error).__name__}).") from None
        headers = message.headers or {}
        if _CODE in headers:
            reported = from_wire(headers[_CODE], headers.get(_MESSAGE, ""), headers.get(_HINT, ""))
            if isinstance(reported, RateLimitedError):
                reported.retry_after = _retry_after(headers)
            raise reported
        return message

    async def _ask(self, subject: str, data: bytes, timeout: timedelta, *, is_repeatable: bool) -> Msg:
        """Ask once, or twice if there is no answer; who answers is told each time how long that one is waited for."""
        if is_repeatable:
            first = timeout * _FIRST_PART
            with suppress(TimeoutError):
                return await self._ask(subject, data, first, is_repeatable=False)
            timeout -= first
        headers = None if timeout == _USUAL_PATIENCE else {_PATIENCE: str(int(timeout.total_seconds() * 1_000))}
        with heeding_cancellation():
            return await self._client.request(subject, data, timeout=timeout.total_seconds(), headers=headers)
