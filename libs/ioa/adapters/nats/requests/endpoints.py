"""Endpoints of services: subjects, request handlers, and limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from ioa.errors import ForbiddenError
from ioa.protocol import subjects
from ioa.protocol.codec import encode, receive
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.protocol.model import Model
from ioa.rate_limit import RateLimit

DEFAULT_MAX_BYTES = 65_536
"""Largest request of an endpoint whose requests contain no long texts, files or lists, in bytes."""
DEFAULT_RATE = RateLimit(per_second=200, burst=1_000)
"""Rate of one caller and service. It exceeds the progress reports of an agent with several hundred open tasks."""


Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Gets a request's subject and payload, returns the reply's payload."""
Asked = TypeVar("Asked", bound=Model)


@dataclass(frozen=True)
class ServiceEndpoint:
    """Subjects that a service answers in one way.

    Attributes:
        per_replica: Whether every replica answers, instead of one of them. Such an endpoint is not announced (ADR-32).
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

    async def handle(_subject: str, data: bytes) -> bytes:
        return encode(await method(receive(kind, data)))

    return handle


def answer_agent(
    kind: type[Asked],
    method: Callable[[Asked], Awaitable[Model]],
    claimed: Callable[[Asked], AgentId],
    claimed_pool: Callable[[Asked], PoolId] | None = None,
) -> Handler:
    """Make a handler that rejects a request whose payload names another agent, or another pool, than the subject."""

    async def handle(subject: str, data: bytes) -> bytes:
        request, (pool, caller) = receive(kind, data), subjects.parse_agent(subject)
        if claimed(request) != caller:
            raise ForbiddenError(f"{caller} of the pool {pool} may not ask as {claimed(request)}.")
        if claimed_pool is not None and claimed_pool(request) != pool:
            raise ForbiddenError(f"{caller} of the pool {pool} may not ask as an agent of the pool {claimed_pool(request)}.")
        return encode(await method(request))

    return handle


def answer_as(kind: type[Asked], method: Callable[[Asked], Awaitable[Model]], claimed: Callable[[Asked], UserId]) -> Handler:
    """Make a handler that rejects a request whose payload names another user than the subject."""

    async def handle(subject: str, data: bytes) -> bytes:
        request, caller = receive(kind, data), subjects.parse_user(subject)
        if claimed(request) != caller:
            raise ForbiddenError(f"{caller} may not ask as {claimed(request)}.")
        return encode(await method(request))

    return handle


def answer_user(kind: type[Asked], method: Callable[[UserId, Asked], Awaitable[Model]]) -> Handler:
    """Make a handler that passes the user named by the subject to the method."""

    async def handle(subject: str, data: bytes) -> bytes:
        return encode(await method(subjects.parse_user(subject), receive(kind, data)))

    return handle


def answer_admin(kind: type[Asked], method: Callable[[UserId, Asked], Awaitable[Model]]) -> Handler:
    """Make a handler that passes the user that an admin's subject names to the method."""

    async def handle(subject: str, data: bytes) -> bytes:
        return encode(await method(subjects.parse_owner(subject), receive(kind, data)))

    return handle
