"""Requests and their answers over NATS micro services (ADR-32): serving them and making them.

An error keeps its class on the way: code, message and hint travel in the reply's headers. How long the caller will wait travels in
the request's, so that nobody works for one who has gone.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import TypeVar

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro import add_service
from nats.micro.request import Request
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.sinks import MessageSink
from ioa.adapters.nats.translated_errors import heeding_cancellation
from ioa.errors import ForbiddenError, IoaError, PayloadTooLargeError, UnavailableError, from_wire, row_of
from ioa.protocol import subjects
from ioa.protocol.codec import decode, encode, receive
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.protocol.model import Model
from ioa.protocol.subjects import kind_of

_CODE, _MESSAGE, _HINT = "Nats-Service-Error-Code", "Nats-Service-Error", "Ioa-Hint"
_PATIENCE = "Ioa-Patience"
"""How many ms the caller of a request waits for the answer."""
_USUAL_PATIENCE = timedelta(seconds=5)
"""How long a caller waits that does not say; headers would cost every message some microseconds."""
FILE_TIMEOUT = timedelta(seconds=30)
"""How long to wait for a piece of a file: those of others are served in between."""

_log = structlog.get_logger(__name__)
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

requests = Counter(
    "ioa_requests_total",
    "Requests answered, by kind of subject and `ok` or the error's code; `overdue` were dropped, since their callers had gone",
    ["subject", "code"],
)
request_seconds = Histogram("ioa_request_duration_seconds", "Time to answer a request", ["subject"], buckets=_BUCKETS)
asked = Counter("ioa_client_requests_total", "Requests made, by kind of subject and `ok` or the error's code", ["subject", "code"])
asked_seconds = Histogram("ioa_client_request_duration_seconds", "Time until a request was answered", ["subject"], buckets=_BUCKETS)

Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Gets a request's subject and payload; returns the answer's."""
Asked = TypeVar("Asked", bound=Model)
Reply = TypeVar("Reply", bound=Model)


@dataclass(frozen=True)
class Endpoint:
    """A subject that is answered.

    Attributes:
        is_own: Whether it is not shared out: every replica that listens to the subject answers, which is one alone if the subject
            names it. It is not announced (ADR-32), and takes the shorter way of `MessageSink`.
        lane: Says by the subject of a request whose load it is. Each lane has a share of what is answered at once, and none waits
            for another; endpoints may share lanes. Without it the endpoint's requests are one lane without a bound.
    """

    name: str
    subject: str
    handler: Handler
    is_own: bool = False
    lane: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Bounds:
    """How much a replica takes on.

    Attributes:
        max_concurrent: How many requests are answered side by side.
        waiting: How many more may wait for that.
        waiting_bytes: How much memory those may take.
        lane_max_concurrent: How many of one lane are answered side by side.
        lane_waiting: How many of one lane may wait.
    """

    max_concurrent: int = 1_000
    waiting: int = 50_000
    waiting_bytes: int = 128_000_000
    lane_max_concurrent: int = 64
    lane_waiting: int = 4_000


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
async def open_service(
    client: Client,
    name: str,
    description: str,
    version: str,
    endpoints: Sequence[Endpoint],
    *,
    bounds: Bounds = Bounds(),
) -> AsyncIterator[None]:
    """Answer requests as one replica of a micro service; on leaving, finish those in flight.

    All replicas share a queue group, so each request reaches one of them. Requests are answered side by side; those for which
    there is no room wait, the lanes in turn, and beyond the bounds whoever asks is told to come again. One that has waited here for
    longer than its caller will is dropped.
    """
    async with asyncio.TaskGroup() as group:
        service = await add_service(client, name=name, description=description, version=version, queue_group=name, metadata={})
        answering, own = _Answering(group, bounds), []
        for endpoint in endpoints:
            take = partial(answering.take, endpoint)
            if endpoint.is_own:
                own.append(await client.subscribe(endpoint.subject, future=MessageSink(take)))
            else:
                await service.add_endpoint(name=endpoint.name, subject=endpoint.subject, handler=_handler(take))
        try:
            yield
        finally:
            try:
                for subscription in own:
                    with suppress(nats.errors.ConnectionClosedError):
                        await subscription.drain()  # type: ignore[no-untyped-call]
                await service.stop()
            finally:
                answering.close()


def _handler(take: Callable[[Msg | Request], None]) -> Callable[[Request], Awaitable[None]]:
    async def handle(request: Request) -> None:
        take(request)

    return handle


@dataclass(frozen=True)
class _Waiting:
    """A request for which there was no room when it came."""

    endpoint: Endpoint
    request: Request
    until: float
    """When its caller has gone, by the loop's clock."""


class _Lane:
    """The requests of one load. `in_turn` says that some wait for which the lane has room, so that the others' turns come first."""

    __slots__ = ("in_flight", "in_turn", "key", "most", "waiting")

    def __init__(self, key: str, most: int) -> None:
        self.key = key
        self.most = most
        self.in_flight = 0
        self.in_turn = False
        self.waiting: deque[_Waiting] = deque()


class _Answering:
    """Answers requests side by side, within bounds, and lets each lane have its turn."""

    def __init__(self, group: asyncio.TaskGroup, bounds: Bounds) -> None:
        self._group = group
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._in_flight = 0
        self._waiting = 0
        self._waiting_bytes = 0
        self._lanes: dict[str, _Lane] = {}
        self._turns: deque[_Lane] = deque()
        self._closed = False

    def take(self, endpoint: Endpoint, message: Msg | Request) -> None:
        """Answer a request as soon as there is room. One that comes after all is closed was not taken."""
        if self._closed:
            return
        request = Request(message) if isinstance(message, Msg) else message
        lane = self._lane(endpoint, request.subject)
        if self._in_flight < self._bounds.max_concurrent and lane.in_flight < lane.most and not lane.waiting:
            self._start(lane, endpoint, request)
        elif self._has_room_to_wait(endpoint, lane, request):
            self._waiting += 1
            self._waiting_bytes += len(request.data)
            lane.waiting.append(_Waiting(endpoint, request, self._loop.time() + _patience(request)))
            self._give_turn(lane)
        else:
            self._group.create_task(_respond_error(request, UnavailableError(f"Too many requests wait for {endpoint.name}.")))

    def close(self) -> None:
        """Take nothing more. The task group is about to end, and refuses tasks by an error that would end nats-py's reading."""
        self._closed = True

    def _lane(self, endpoint: Endpoint, subject: str) -> _Lane:
        if endpoint.lane is None:
            key, most = f"endpoint {endpoint.name}", self._bounds.max_concurrent
        else:
            key, most = endpoint.lane(subject), self._bounds.lane_max_concurrent
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key, most)
        return lane

    def _has_room_to_wait(self, endpoint: Endpoint, lane: _Lane, request: Request) -> bool:
        most_of_lane = self._bounds.waiting if endpoint.lane is None else self._bounds.lane_waiting
        return (
            self._waiting < self._bounds.waiting
            and len(lane.waiting) < most_of_lane
            and self._waiting_bytes + len(request.data) <= self._bounds.waiting_bytes
        )

    def _give_turn(self, lane: _Lane) -> None:
        """Put a lane in line, behind the others, if it has something to do and may do it."""
        if lane.waiting and lane.in_flight < lane.most and not lane.in_turn:
            lane.in_turn = True
            self._turns.append(lane)

    def _start(self, lane: _Lane, endpoint: Endpoint, request: Request) -> None:
        self._in_flight += 1
        lane.in_flight += 1
        self._group.create_task(self._answer(lane, endpoint, request))

    async def _answer(self, lane: _Lane, endpoint: Endpoint, request: Request) -> None:
        try:
            await _answer(endpoint, request)
        finally:
            self._in_flight -= 1
            lane.in_flight -= 1
            this = asyncio.current_task()
            if this is not None and not this.cancelling():  # else the service has failed, and its task group refuses tasks
                self._go_on(lane)

    def _go_on(self, lane: _Lane) -> None:
        """Begin what there is room for now that a request of a lane is answered."""
        self._give_turn(lane)
        while self._turns and self._in_flight < self._bounds.max_concurrent:
            self._serve(self._turns.popleft())
        if not lane.in_flight and not lane.waiting:
            self._lanes.pop(lane.key, None)

    def _serve(self, lane: _Lane) -> None:
        """Answer the first one of a lane that is still waited for."""
        lane.in_turn, now = False, self._loop.time()
        while lane.waiting:
            first = lane.waiting.popleft()
            self._waiting -= 1
            self._waiting_bytes -= len(first.request.data)
            if first.until > now:
                self._start(lane, first.endpoint, first.request)
                break
            _answered(first.endpoint.subject, "overdue").inc()
        self._give_turn(lane)


def _patience(request: Request) -> float:
    """Read for how many seconds the caller waits; as long as usual if it does not say, or says nothing that can be read."""
    try:
        return float((request.headers or {})[_PATIENCE]) / 1_000
    except (KeyError, ValueError):
        return _USUAL_PATIENCE.total_seconds()


async def _answer(endpoint: Endpoint, request: Request) -> None:
    started = time.perf_counter()
    code = "ok"
    try:
        await request.respond(await endpoint.handler(request.subject, request.data))
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
    except Exception:
        code = row_of(Exception).wire_code
        _log.exception("request_crashed", endpoint=endpoint.name)
        await _respond_error(request, IoaError(f"{endpoint.name} failed; its log says why."))
    finally:
        _answered(endpoint.subject, code).inc()
        _took(endpoint.subject).observe(time.perf_counter() - started)


@cache
def _answered(subject: str, code: str) -> Counter:
    return requests.labels(kind_of(subject), code)


@cache
def _took(subject: str) -> Histogram:
    return request_seconds.labels(kind_of(subject))


async def _respond_error(request: Request, error: IoaError) -> None:
    try:
        await request.respond_error(
            row_of(error).wire_code, _one_line(error.message), headers={_HINT: _one_line(error.hint)} if error.hint else None
        )
    except (nats.errors.Error, OSError, ValueError) as failure:
        _log.warning("request_unanswered", error=str(failure) or type(failure).__name__)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:2_000]


class NatsRequester:
    """Make requests to services."""

    def __init__(self, client: Client, timeout: timedelta = _USUAL_PATIENCE) -> None:
        self._client = client
        self._timeout = timeout

    async def request(self, subject: str, request: Model, reply: type[Reply], *, timeout: timedelta | None = None) -> Reply:
        """Ask and wait for the answer.

        Raises:
            UnavailableError: Nobody serves the subject, or nobody answered in time.
            IoaError: What the service reported, as the class it was raised as.
        """
        kind, code, started = kind_of(subject), "ok", time.perf_counter()
        try:
            return await self._request(subject, request, reply, timeout or self._timeout)
        except IoaError as error:
            code = row_of(error).wire_code
            raise
        except asyncio.CancelledError:
            code = "cancelled"
            raise
        finally:
            asked.labels(kind, code).inc()
            asked_seconds.labels(kind).observe(time.perf_counter() - started)

    async def _request(self, subject: str, request: Model, reply: type[Reply], timeout: timedelta) -> Reply:
        try:
            with heeding_cancellation():
                headers = None if timeout == _USUAL_PATIENCE else {_PATIENCE: str(int(timeout.total_seconds() * 1_000))}
                message = await self._client.request(subject, encode(request), timeout=timeout.total_seconds(), headers=headers)
        except nats.errors.NoRespondersError:
            raise UnavailableError(f"Nobody serves {subject}.", hint="Is the service running? `ioa doctor` tells.") from None
        except nats.errors.MaxPayloadError:
            raise PayloadTooLargeError(f"What was to be asked of {subject} is larger than the server allows.") from None
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise UnavailableError(f"{subject} did not answer ({str(error) or type(error).__name__}).") from None
        headers = message.headers or {}
        if _CODE in headers:
            raise from_wire(headers[_CODE], headers.get(_MESSAGE, ""), headers.get(_HINT, ""))
        return decode(reply, message.data)
