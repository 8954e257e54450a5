"""Micro services (NATS ADR-32): one replica receives requests, applies the limits, calls handlers and replies.

Each caller has a token bucket per service, and queued requests are served round-robin by key. Above a limit the reply is
`RateLimitedError` with a retry time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property, partial
from typing import TypeVar

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Endpoint as MicroEndpoint
from nats.micro.service import EndpointConfig
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.requests.rate_limit import RateLimit, RateLimiter
from ioa.adapters.nats.requests.request import DEFAULT_TIMEOUT, REQUEST_BUCKETS, error_headers
from ioa.adapters.nats.wire.subscriptions import MessageSink
from ioa.concurrency import TaskGroup, heeding_cancellation
from ioa.errors import ForbiddenError, IoaError, PayloadTooLargeError, RateLimitedError, row_of
from ioa.fair_semaphore import FairSemaphore
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, check_size, encode, receive
from ioa.protocol.model import Model

DEFAULT_MAX_BYTES = 65_536
"""Largest request of an endpoint whose requests contain no long texts, files or lists, in bytes."""
DEFAULT_RATE = RateLimit(per_second=200, burst=1_000)
"""Rate per caller and service. It exceeds the progress reports of an agent with several hundred open tasks."""
REJECTED = "rejected"
"""Key of the rejected callers in a service's statistics: lists of caller, `rate` or `share`, and number of rejections."""
_REJECTION_SECONDS = 60.0
"""How long a rejected caller is listed in the statistics."""

requests = Counter(
    "ioa_requests_total",
    "Requests received, by kind of subject and `ok` or the error's code; `overdue`: dropped after the caller's timeout",
    ["subject", "code"],
)
request_seconds = Histogram("ioa_request_duration_seconds", "Time to handle a request", ["subject"], buckets=REQUEST_BUCKETS)
_requests_with, _seconds_of = cache(requests.labels), cache(request_seconds.labels)  # `labels` takes longer than `inc`

_log = structlog.get_logger(__name__)

Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Gets a request's subject and payload, returns the reply's payload."""
Asked = TypeVar("Asked", bound=Model)
Caller = TypeVar("Caller")


@dataclass(frozen=True)
class ServiceEndpoint:
    """Subjects that a service answers in one way.

    Attributes:
        per_replica: Whether every replica receives each request.
        queue_key: Returns, for a request's subject, the key by which requests are queued round-robin. None: the caller.
        cost: Cost of a request in the caller's token bucket.
        max_bytes: Largest request; a larger one is rejected unread.
        timeout: How long callers wait for the reply; a request that has waited longer is dropped.
    """

    name: str
    subject: str | tuple[str, ...]
    handler: Handler
    per_replica: bool = False
    queue_key: Callable[[str], str] | None = None
    cost: float = 1
    max_bytes: int = DEFAULT_MAX_BYTES
    timeout: timedelta = DEFAULT_TIMEOUT

    @property
    def patterns(self) -> tuple[str, ...]:
        """The subjects, one or several."""
        return (self.subject,) if isinstance(self.subject, str) else self.subject

    @cached_property
    def kind(self) -> str:
        """The kind of its subjects, in metrics."""
        return subjects.kind_of(self.patterns[0])


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of a replica: the rate per caller over all endpoints, and the numbers of running and waiting requests."""

    rate: RateLimit = DEFAULT_RATE
    max_concurrent: int = 1_000
    max_concurrent_per_key: int = 64
    max_waiting_per_key: int = 1_000


DEFAULT_LIMITS = ServiceLimits()


def answer(kind: type[Asked], method: Callable[[Asked], Awaitable[Model]]) -> Handler:
    """Make a handler that decodes the request, calls a method and encodes the reply."""
    return answer_caller(kind, lambda _subject, request: method(request), str)


def answer_caller(
    kind: type[Asked],
    method: Callable[[Caller, Asked], Awaitable[Model]],
    parse_caller: Callable[[str], Caller],
    max_reply_bytes: int = MAX_PAYLOAD_BYTES,
) -> Handler:
    """Make a handler that passes the caller that the subject names to the method."""

    async def handle(subject: str, data: bytes) -> bytes:
        request = receive(kind, data)
        return encode(await method(parse_caller(subject), request), max_payload_bytes=max_reply_bytes)

    return handle


def answer_agent(kind: type[Asked], method: Callable[[Asked], Awaitable[Model]], *claimed: Callable[[Asked], str]) -> Handler:
    """Make a handler that rejects a request whose payload claims another agent, or also another pool, than the subject."""

    def check(names: Sequence[str], request: Asked) -> Awaitable[Model]:
        for name, claim in zip(names, claimed, strict=False):
            if claim(request) != name:
                raise ForbiddenError(f"{name} may not send a request as {claim(request)}.")
        return method(request)

    return answer_caller(kind, check, lambda subject: subjects.parse_agent(subject)[::-1])


@asynccontextmanager
async def open_service(
    client: Client,
    name: str,
    description: str,
    version: str,
    endpoints: Sequence[ServiceEndpoint],
    *,
    limits: ServiceLimits = DEFAULT_LIMITS,
) -> AsyncIterator[None]:
    """Answer requests as one replica of a micro service. At the end, finish the requests that were received.

    All replicas share a queue group, so that each request reaches one of them. The statistics (`$SRV.STATS`) of the first endpoint
    list the callers that were rejected lately.
    """
    async with TaskGroup() as group:
        dispatcher = _Dispatcher(group, limits)
        service = await add_service(
            client,
            name=name,
            description=description,
            version=version,
            queue_group=name,
            metadata={},
            stats_handler=lambda stats: {REJECTED: dispatcher.rejected()} if stats.name == endpoints[0].name else None,
        )
        subscriptions = list[Subscription]()
        for endpoint in endpoints:
            queue = service.id if endpoint.per_replica else name
            announced = MicroEndpoint(service, EndpointConfig(endpoint.name, _dispatched, queue, endpoint.patterns[0]))
            sink = MessageSink(partial(dispatcher.receive, endpoint, announced))
            for subject in endpoint.patterns:
                subscriptions.append(await client.subscribe(subject, queue=queue, future=sink))
            service._endpoints.append(announced)
        try:
            yield
        finally:
            try:
                with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):
                    for subscription in subscriptions:
                        await client._send_unsubscribe(subscription._id)
                    await client.flush()  # the requests that the server has sent arrive before its answer
            finally:
                dispatcher.is_closed = True
                for subscription in subscriptions:
                    client._remove_sub(subscription._id)
            service._endpoints.clear()
            with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):
                await service.stop()


async def _dispatched(request: Request) -> None:
    raise AssertionError(f"{request.subject} is received by the dispatcher")


class _Dispatcher:
    """Applies the limits to requests, and calls the handlers."""

    def __init__(self, group: asyncio.TaskGroup, limits: ServiceLimits) -> None:
        self._group = group
        self._limiter = RateLimiter(limits.rate)
        self._slots = FairSemaphore(limits.max_concurrent, limits.max_concurrent_per_key, limits.max_waiting_per_key)
        self._now = asyncio.get_running_loop().time
        self._rejections: dict[tuple[str, str], tuple[int, float]] = {}
        """Number and time of the last rejections, by caller and kind of limit."""
        self.is_closed = False

    def receive(self, endpoint: ServiceEndpoint, announced: MicroEndpoint, message: Msg) -> None:
        """Start to handle a request, or reject it."""
        if self.is_closed:
            return
        announced._num_requests += 1
        caller = subjects.caller_of(message.subject)
        if caller not in ("", subjects.GATEWAY):  # the gateway acts for many users
            if retry_after := self._limiter.acquire(caller, self._now(), endpoint.cost):
                error = RateLimitedError(
                    f"{caller} exceeds its request rate.", retry_after=timedelta(seconds=retry_after), hint="Retry later."
                )
                self._group.create_task(self._reject(endpoint, caller, message, error, "rate"))
                return
        self._group.create_task(self._handle(endpoint, caller, message))

    async def _handle(self, endpoint: ServiceEndpoint, caller: str, message: Msg) -> None:
        """Wait for a slot and respond, unless the caller's timeout has expired."""
        key = endpoint.queue_key(message.subject) if endpoint.queue_key is not None else caller or endpoint.name
        received_at = self._now()
        try:
            await self._slots.acquire(key)
        except RateLimitedError as error:
            await self._reject(endpoint, caller, message, error, "share")
            return
        try:
            if self._now() - received_at <= endpoint.timeout.total_seconds():
                await self._respond(endpoint, caller, message)
            else:
                requests.labels(endpoint.kind, "overdue").inc()
        finally:
            self._slots.release(key)

    async def _respond(self, endpoint: ServiceEndpoint, caller: str, message: Msg) -> None:
        started, code = time.perf_counter(), "ok"
        try:
            check_size(message.data, endpoint.max_bytes, f"This request for {endpoint.name}")
            await _reply(message, await endpoint.handler(message.subject, message.data))
        except nats.errors.MaxPayloadError:
            error = PayloadTooLargeError(f"The reply of {endpoint.name} is larger than the server allows.")
            code = await _report(endpoint, caller, message, error)
        except (IoaError, nats.errors.Error, OSError) as error:
            code = await _report(endpoint, caller, message, error)
        except Exception as error:  # noqa: BLE001 - the caller gets a reply, the log the traceback
            code = row_of(error).wire_code
            _log.error("request_crashed", endpoint=endpoint.name, exc_info=error)
            await _reply_error(message, IoaError(f"{endpoint.name} failed; its log contains the reason."))
        finally:
            _requests_with(endpoint.kind, code).inc()
            _seconds_of(endpoint.kind).observe(time.perf_counter() - started)

    async def _reject(self, endpoint: ServiceEndpoint, caller: str, message: Msg, error: RateLimitedError, kind: str) -> None:
        requests.labels(endpoint.kind, row_of(error).wire_code).inc()
        if (caller, kind) not in self._rejections:
            self._forget_rejections()
            _log.warning("caller_rate_limited", caller=caller, kind=kind)
        count, _ = self._rejections.get((caller, kind), (0, 0.0))
        self._rejections[caller, kind] = count + 1, self._now()
        await _reply_error(message, error)

    def rejected(self) -> list[list[str | int]]:
        """Return the callers that were rejected lately, with the kind of limit and the number of rejections."""
        self._forget_rejections()
        found = sorted(self._rejections.items(), key=lambda item: -item[1][0])
        return [[caller, kind, count] for (caller, kind), (count, _) in found]

    def _forget_rejections(self) -> None:
        since = self._now() - _REJECTION_SECONDS
        self._rejections = {key: (count, at) for key, (count, at) in self._rejections.items() if at > since}


async def _report(endpoint: ServiceEndpoint, caller: str, message: Msg, error: Exception) -> str:
    """Log a failure, reply, and return the code."""
    code, level = (row_of(error).wire_code, row_of(error).level) if isinstance(error, IoaError) else ("unanswered", "warning")
    text = str(error) or type(error).__name__
    getattr(_log, level)("request_failed", endpoint=endpoint.name, code=code, error=text, caller=caller)
    if isinstance(error, IoaError):
        await _reply_error(message, error)
    return code


async def _reply(message: Msg, data: bytes, headers: dict[str, str] | None = None) -> None:
    if message.reply:
        await message._client.publish(message.reply, data, headers=headers)


async def _reply_error(message: Msg, error: IoaError) -> None:
    with suppress(nats.errors.Error, OSError):  # the caller's timeout expires
        await _reply(message, b"", error_headers(error))
