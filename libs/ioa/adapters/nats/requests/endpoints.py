"""Endpoints of services: subjects, request handlers, and limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ioa.errors import ForbiddenError
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode, receive
from ioa.protocol.model import Model
from ioa.rate_limit import RateLimit

DEFAULT_MAX_BYTES = 65_536
"""Largest request of an endpoint whose requests contain no long texts, files or lists, in bytes."""
DEFAULT_RATE = RateLimit(per_second=200, burst=1_000)
"""Rate of one caller and service. It exceeds the progress reports of an agent with several hundred open tasks."""

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
        cost: Cost of a request in the caller's token bucket, or a function of the payload that returns the cost.
        exempt_callers: Callers whose rate is not limited, because they act for many users.
        max_bytes: Largest request; a larger one is rejected unread.
    """

    name: str
    subject: str | tuple[str, ...]
    handler: Handler
    per_replica: bool = False
    queue_key: Callable[[str], str] | None = None
    cost: float | Callable[[bytes], float] = 1
    exempt_callers: Collection[str] = ()
    max_bytes: int = DEFAULT_MAX_BYTES

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
    """Limits of one replica of a service.

    Attributes:
        rate: Rate of one caller over all endpoints of the service.
        max_concurrent: Requests that are handled at once.
        max_concurrent_per_key: Requests of one queue key that are handled at once.
        max_waiting_per_key: Requests of one queue key that may wait.
    """

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


def answer_as(
    kind: type[Asked],
    method: Callable[[Asked], Awaitable[Model]],
    parse_names: Callable[[str], Sequence[str]],
    *claimed: Callable[[Asked], str],
) -> Handler:
    """Make a handler that rejects a request whose payload claims other names than the subject, which are compared in order."""

    def check(names: Sequence[str], request: Asked) -> Awaitable[Model]:
        for name, claim in zip(names, claimed, strict=False):
            if claim(request) != name:
                raise ForbiddenError(f"{name} may not send a request as {claim(request)}.")
        return method(request)

    return answer_caller(kind, check, parse_names)


def answer_agent(kind: type[Asked], method: Callable[[Asked], Awaitable[Model]], *claimed: Callable[[Asked], str]) -> Handler:
    """Make a handler that rejects a request whose payload claims another agent, or also another pool, than the subject."""
    return answer_as(kind, method, lambda subject: subjects.parse_agent(subject)[::-1], *claimed)
