"""Micro services (NATS ADR-32): one replica receives requests, applies the limits, calls handlers and replies.

Each caller has a token bucket per service, and queued requests are served round-robin by key. Above a limit the reply is
`RateLimitedError` with a retry time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import cache, partial
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Endpoint as MicroEndpoint
from nats.micro.service import EndpointConfig, EndpointStats
from nats.micro.service import Service as MicroService

from ioa.adapters.nats.requests.endpoints import DEFAULT_LIMITS, ServiceEndpoint, ServiceLimits
from ioa.adapters.nats.requests.request import REQUEST_BUCKETS, error_headers, read_timeout
from ioa.adapters.nats.wire.headers import written_bytes
from ioa.adapters.nats.wire.publishing import publish_to_each
from ioa.adapters.nats.wire.sinks import MessageSink
from ioa.cancellation import TaskGroup, heeding_cancellation
from ioa.errors import IoaError, PayloadTooLargeError, RateLimitedError, row_of
from ioa.fair_semaphore import FairSemaphore
from ioa.protocol import subjects
from ioa.protocol.codec import check_size
from ioa.rate_limit import RateLimiter
from ioa.telemetry.fast_metrics import TalliedTimes, Tally
from ioa.telemetry.logs import OneASecond

_MAX_LOGGED_CALLER_CHARS = 64
_REJECTION_SECONDS = 60.0
"""How long a rejected caller is listed in the statistics, and how often it is logged."""
_MAX_REJECTED_LISTED, _MAX_REJECTED = 200, 10_000
_RATE_LIMITED = row_of(RateLimitedError).wire_code

requests = Tally(
    "ioa_requests_total",
    "Requests received, by kind of subject and `ok` or the error's code; `overdue`: dropped after the caller's timeout",
    ["subject", "code"],
)
request_seconds = TalliedTimes("ioa_request_duration_seconds", "Time to handle a request", REQUEST_BUCKETS, ["subject"])

_kind_of = cache(subjects.kind_of)
_log = structlog.get_logger(__name__)


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

    Args:
        client: The connection.
        name: Name of the service.
        description: Purpose of the service.
        version: Version of the service.
        endpoints: The subjects to answer.
        limits: Limits of this replica.
    """
    async with TaskGroup() as group:
        dispatcher = _Dispatcher(group, limits)
        listed_by = next((endpoint.name for endpoint in endpoints if not endpoint.per_replica), "")

        def statistics(stats: EndpointStats) -> object:
            stats.num_requests = dispatcher.received[stats.name]
            return {REJECTED: dispatcher.rejected()} if stats.name == listed_by else None

        service = await add_service(
            client, name=name, description=description, version=version, queue_group=name, metadata={}, stats_handler=statistics
        )
        subscriptions = list[Subscription]()
        for endpoint in endpoints:
            queue = service.id if endpoint.per_replica else name
            sink = MessageSink(partial(dispatcher.receive, endpoint))
            for subject in endpoint.patterns:
                subscriptions.append(await client.subscribe(subject, queue=queue, future=sink))
            if not endpoint.per_replica:
                service._endpoints.append(_Announced(service, endpoint, name))
        try:
            yield
        finally:
            try:
                for subscription in subscriptions:
                    await _drain(client, subscription)
                with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):
                    await service.stop()
            finally:
                dispatcher.is_closed = True


REJECTED = "rejected"
"""Key of the rejected callers in a service's statistics: lists of caller, `rate` or `share`, and number of rejections."""


class _Rejections:
    __slots__ = ("count", "last_at", "logged_at")

    def __init__(self) -> None:
        self.count = 0
        self.last_at = self.logged_at = float("-inf")


class _Dispatcher:
    """Applies the limits to requests, and calls the handlers."""

    def __init__(self, group: asyncio.TaskGroup, limits: ServiceLimits) -> None:
        self._group = group
        self._limiter = RateLimiter(limits.rate)
        self._slots = FairSemaphore(limits.max_concurrent, limits.max_concurrent_per_key, limits.max_waiting_per_key)
        self._loop = asyncio.get_running_loop()
        self._logged = OneASecond(self._loop.time)
        self._rejections: dict[tuple[str, str], _Rejections] = {}
        self.received = Counter[str]()
        """Requests admitted by the rate limit, by endpoint."""
        self.is_closed = False

    def receive(self, endpoint: ServiceEndpoint, message: Msg) -> None:
        """Start to handle a request, queue it, or reject it."""
        if self.is_closed:
            return
        caller = subjects.caller_of(message.subject)
        if caller and caller not in endpoint.exempt_callers:
            cost = endpoint.cost(message.data) if callable(endpoint.cost) else endpoint.cost
            retry_after = self._limiter.acquire(caller, self._loop.time(), cost)
            if retry_after:
                error = RateLimitedError(
                    f"{caller} exceeds its request rate.", retry_after=timedelta(seconds=retry_after), hint="Retry later."
                )
                self._group.create_task(self._reject(endpoint, caller, message, error, "rate"))
                return
        self.received[endpoint.name] += 1
        key = endpoint.queue_key(message.subject) if endpoint.queue_key is not None else caller or endpoint.name
        if self._slots.try_acquire(key):
            self._group.create_task(self._handle(endpoint, key, caller, message))
        else:
            self._group.create_task(self._wait(endpoint, key, caller, message))

    def rejected(self) -> list[list[str | int]]:
        """Return the callers that were rejected lately, with the kind of limit and the number of rejections."""
        self._forget_rejections()
        found = sorted(self._rejections.items(), key=lambda one: -one[1].count)
        return [[caller, kind, one.count] for (caller, kind), one in found[:_MAX_REJECTED_LISTED]]

    async def _wait(self, endpoint: ServiceEndpoint, key: str, caller: str, message: Msg) -> None:
        deadline = self._loop.time() + read_timeout(message.headers)
        try:
            await self._slots.acquire(key)
        except RateLimitedError as error:
            await self._reject(endpoint, caller, message, error, "share")
            return
        if self._loop.time() <= deadline:
            await self._handle(endpoint, key, caller, message)
        else:
            self._slots.release(key)
            requests.counts[_kind_of(endpoint.patterns[0]), "overdue"] += 1

    async def _handle(self, endpoint: ServiceEndpoint, key: str, caller: str, message: Msg) -> None:
        try:
            await self._respond(endpoint, caller, message)
        finally:
            self._slots.release(key)

    async def _respond(self, endpoint: ServiceEndpoint, caller: str, message: Msg) -> None:
        started, code = time.perf_counter(), "ok"
        try:
            check_size(message.data, endpoint.max_bytes, f"This request for {endpoint.name}")
            await _reply(message, await endpoint.handler(message.subject, message.data))
        except IoaError as error:
            code = row_of(error).wire_code
            self._log_failure(row_of(error).level, endpoint, caller, code, error.message)
            await self._reply_error(endpoint, caller, message, error)
        except nats.errors.MaxPayloadError:
            too_large = PayloadTooLargeError(f"The reply of {endpoint.name} is larger than the server allows.")
            code = row_of(too_large).wire_code
            self._log_failure("error", endpoint, caller, code, too_large.message)
            await self._reply_error(endpoint, caller, message, too_large)
        except (nats.errors.Error, OSError) as error:
            code = "unanswered"
            self._log_failure("warning", endpoint, caller, code, str(error) or type(error).__name__)
        except Exception:  # noqa: BLE001 - the caller gets a reply, the log the traceback
            code = row_of(Exception).wire_code
            _log.exception("request_crashed", endpoint=endpoint.name)
            await self._reply_error(endpoint, caller, message, IoaError(f"{endpoint.name} failed; its log contains the reason."))
        finally:
            kind = _kind_of(endpoint.patterns[0])
            requests.counts[kind, code] += 1
            request_seconds.observe(time.perf_counter() - started, (kind,))

    async def _reject(self, endpoint: ServiceEndpoint, caller: str, message: Msg, error: RateLimitedError, kind: str) -> None:
        requests.counts[_kind_of(endpoint.patterns[0]), _RATE_LIMITED] += 1
        now, rejections = self._loop.time(), self._rejections.setdefault((caller, kind), _Rejections())
        rejections.count, rejections.last_at = rejections.count + 1, now
        if now - rejections.logged_at >= _REJECTION_SECONDS:
            rejections.logged_at = now
            _log.warning("caller_rate_limited", caller=caller[:_MAX_LOGGED_CALLER_CHARS], kind=kind, rejected=rejections.count)
            if len(self._rejections) > _MAX_REJECTED:
                self._forget_rejections()
        await self._reply_error(endpoint, caller, message, error)

    def _forget_rejections(self) -> None:
        since = self._loop.time() - _REJECTION_SECONDS
        self._rejections = {key: one for key, one in self._rejections.items() if one.last_at > since}

    async def _reply_error(self, endpoint: ServiceEndpoint, caller: str, message: Msg, error: IoaError) -> None:
        try:
            await _reply(message, b"", error_headers(error))
        except (nats.errors.Error, OSError) as failure:
            self._log_failure("warning", endpoint, caller, "unanswered", str(failure) or type(failure).__name__)

    def _log_failure(self, level: str, endpoint: ServiceEndpoint, caller: str, code: str, error: str) -> None:
        """Log a failed request, at most one line per second for each endpoint, caller and code."""
        dropped = self._logged.left_out((endpoint.name, caller, code))
        if dropped is None:
            return
        more: dict[str, Any] = {"caller": caller[:_MAX_LOGGED_CALLER_CHARS]} if caller else {}
        more |= {"dropped": dropped} if dropped else {}
        getattr(_log, level)("request_failed", endpoint=endpoint.name, code=code, error=error, **more)


async def _reply(message: Msg, data: bytes, headers: dict[str, str] | None = None) -> None:
    """Publish a reply, if the request names a subject for it.

    Raises:
        MaxPayloadError: The reply is larger than the server allows. nats-py ignores the headers' size; the server disconnects then.
    """
    if not message.reply:
        return
    client = message._client
    if headers and len(data) + written_bytes(headers) > client.max_payload:
        raise nats.errors.MaxPayloadError
    await publish_to_each(client, [message.reply], data, headers=headers)


async def _drain(client: Client, subscription: Subscription) -> None:
    """End a subscription after the messages that the server has sent; a new connection does not repeat it."""
    with heeding_cancellation(), suppress(nats.errors.Error, OSError, TimeoutError):
        await subscription.drain()  # type: ignore[no-untyped-call]
    client._remove_sub(subscription._id)


class _Announced(MicroEndpoint):
    """An endpoint in the service's description (ADR-32); `_Dispatcher` receives its requests."""

    def __init__(self, service: MicroService, endpoint: ServiceEndpoint, queue: str) -> None:
        super().__init__(service, EndpointConfig(endpoint.name, _unused, queue, endpoint.patterns[0]))

    async def _start(self) -> None:
        """Subscribe to nothing."""

    async def _stop(self) -> None:
        """End nothing."""


async def _unused(request: Request) -> None:
    raise AssertionError(f"{request.subject} is received by the dispatcher")
