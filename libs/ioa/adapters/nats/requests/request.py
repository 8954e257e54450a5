"""Requests to services: sends a request, retries after a rate limit, and raises the error that the service reported."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.wire.connection import RequestNotPermittedError
from ioa.errors import IoaError, NotPermittedError, PayloadTooLargeError, RateLimitedError, UnavailableError, from_wire, row_of
from ioa.protocol import subjects
from ioa.protocol.agents.search import Search, SearchResult
from ioa.protocol.codec import MAX_ANSWER_BYTES, decode, encode
from ioa.protocol.model import Model

DEFAULT_TIMEOUT = timedelta(seconds=5)
"""How long a caller waits for a reply by default."""
SAY_TIMEOUT = timedelta(seconds=2)
"""Short, because a message can be sent again at any time, and its group waits for it."""
SEARCH_TIMEOUT = FILE_TIMEOUT = timedelta(seconds=15)
"""Timeouts of searches and of pieces of files, the longest ones: nats-server keeps the route of a reply until then."""
REQUEST_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Histogram buckets of request durations, in seconds."""
_DEFAULT_RETRY_AFTER = timedelta(seconds=1)
_HINT_HEADER, _RETRY_AFTER_HEADER = "Ioa-Hint", "Ioa-Retry-After"
"""Headers: the hint of an error, and milliseconds until a retry."""
_MAX_HEADER_CHARS = 2_000
NOT_PERMITTED_HINT = (
    "IOA_NATS_SEED names the key in use. Users, observers and admins list agents and services, users and admins read goals,"
    " auditors read the audit log, agents none of these."
)

client_requests = Counter(
    "ioa_client_requests_total", "Requests sent, by kind of subject and `ok` or the error's code", ["subject", "code"]
)
client_request_seconds = Histogram(
    "ioa_client_request_duration_seconds", "Time until a reply arrived", ["subject"], buckets=REQUEST_BUCKETS
)

Reply = TypeVar("Reply", bound=Model)


class NatsRequester:
    """Send requests to services. `timeout` is the default time to wait for a reply."""

    def __init__(self, client: Client, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._client = client
        self._timeout = timeout

    async def request(self, subject: str, request: Model, reply: type[Reply], *, timeout: timedelta | None = None) -> Reply:
        """Send a request and return the reply. If the service reports a rate limit, wait `retry_after` and retry.

        Args:
            subject: The service's subject.
            request: The payload.
            reply: The type of the reply.
            timeout: Time to wait for the reply, and until which rate-limited requests are retried. None: the requester's default.

        Raises:
            UnavailableError: No service listens on the subject, or no reply arrived in time.
            RateLimitedError: The rate limit was exceeded until the timeout.
            IoaError: The error that the service reported, of the class that was raised there.
        """
        kind, code, started = subjects.kind_of(subject), "ok", time.perf_counter()
        try:
            message = await self._send_until_admitted(subject, encode(request), timeout or self._timeout)
        except IoaError as error:
            code = row_of(error).wire_code
            raise
        except asyncio.CancelledError:
            code = "cancelled"
            raise
        finally:
            client_requests.labels(kind, code).inc()
            client_request_seconds.labels(kind).observe(time.perf_counter() - started)
        return decode(reply, message.data, max_payload_bytes=MAX_ANSWER_BYTES)

    async def _send_until_admitted(self, subject: str, data: bytes, timeout: timedelta) -> Msg:
        deadline = time.monotonic() + timeout.total_seconds()
        while True:
            message = await self._send_once(subject, data, timeout)
            error = read_error(message.headers or {})
            if error is None:
                return message
            pause = (getattr(error, "retry_after", None) or _DEFAULT_RETRY_AFTER).total_seconds()
            if not isinstance(error, RateLimitedError) or time.monotonic() + pause > deadline:
                raise error
            await asyncio.sleep(pause)

    async def _send_once(self, subject: str, data: bytes, timeout: timedelta) -> Msg:
        try:
            return await self._client.request(subject, data, timeout=timeout.total_seconds())
        except nats.errors.NoRespondersError:
            raise UnavailableError(f"No service listens on {subject}.", hint="Is it running? Check with `ioa doctor`.") from None
        except nats.errors.MaxPayloadError:
            raise PayloadTooLargeError(f"The request to {subject} is larger than the server allows.") from None
        except RequestNotPermittedError:
            denied = f"This credential may not request {subjects.kind_of(subject)}."
            raise NotPermittedError(denied, hint=NOT_PERMITTED_HINT) from None
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise UnavailableError(f"{subject} did not answer ({str(error) or type(error).__name__}).") from None


class NatsDiscovery:
    """Searches of group setup, with a reply of any replica within `timeout`."""

    def __init__(self, client: Client, timeout: timedelta) -> None:
        self._requester = NatsRequester(client, timeout)

    async def search(self, search: Search) -> SearchResult:
        """Search for agents."""
        return await self._requester.request(subjects.GROUP_SEARCH, search, SearchResult)


def error_headers(error: IoaError) -> dict[str, str]:
    """Return the headers of a reply that reports an error (ADR-32, and the hint and retry time)."""
    headers = {ERROR_CODE_HEADER: row_of(error).wire_code, ERROR_HEADER: _one_line(error.message)}
    if error.hint:
        headers[_HINT_HEADER] = _one_line(error.hint)
    if isinstance(error, RateLimitedError) and error.retry_after is not None:
        headers[_RETRY_AFTER_HEADER] = str(math.ceil(error.retry_after / timedelta(milliseconds=1)))
    return headers


def _one_line(text: str) -> str:
    return " ".join(text[:_MAX_HEADER_CHARS].split())


def read_error(headers: Mapping[str, str]) -> IoaError | None:
    """Return the error that a reply reports, of the class that was raised; None if it reports none."""
    if ERROR_CODE_HEADER not in headers:
        return None
    error = from_wire(headers[ERROR_CODE_HEADER], headers.get(ERROR_HEADER, ""), headers.get(_HINT_HEADER, ""))
    if isinstance(error, RateLimitedError):
        with suppress(KeyError, ValueError, OverflowError):
            error.retry_after = timedelta(milliseconds=float(headers[_RETRY_AFTER_HEADER]))
    return error
