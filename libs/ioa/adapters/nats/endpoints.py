"""What services answer over NATS micro services (ADR-32): subjects, the handlers behind them, and what a replica takes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ioa.errors import ForbiddenError
from ioa.protocol import subjects
from ioa.protocol.codec import encode, receive
from ioa.protocol.ids import AgentId, PoolId, UserId
from ioa.protocol.model import Model
from ioa.quotas import RATES, Family, Rate

USUAL_BYTES = 65_536
"""What a request may have whose model holds no long texts, files or many things. What is larger is refused unread: a megabyte of
small elements takes hundreds of ms to read, whatever it was sent as."""
OF_ANYBODY = 250
"""How many requests in half a second a replica takes on a subject that users and observers share."""


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


@dataclass(frozen=True)
class ServiceEndpoint:
    """A subject that is answered.

    Attributes:
        is_own: Whether every replica answers, instead of one of them. Such an endpoint is not announced (ADR-32).
        lane: Names, by the subject of a request, the lane in which it waits. Each lane has a share of what is answered at once;
            endpoints may share lanes. None: each caller has one; where the subject names no caller, the endpoint has.
        caller_at: Index of the subject's token that names the caller, who is bounded in what is asked and queued. None: no token
            does.
        family: What a caller's requests are counted with.
        caller_max_concurrent: Requests of one caller that are answered at once, if fewer than `Bounds.lane_max_concurrent`: for
            what takes much memory or bandwidth.
        for_many: Callers that ask for many users. They are not bounded here, but where those users ask them.
        at_most: Requests that a replica takes in half a second where the subject names no caller; None: all. Such endpoints share
            a part of the replica's time, and take turns by who asks, which the server tells.
        counts: As how many requests one counts. With it a caller is bounded where the subject names none, and charged with the
            processor time of the answer as well.
        searches: Whether a request has nats-server search, which holds up other requests on its subject: it is charged for that
            time, too.
        max_bytes: Largest request; a larger one is refused unread.
        is_work: Whether the time that answering takes is work in the caller's service, which the number of requests bounds: the
            caller is not charged with it, as it may be for other requests of the family.
    """

    name: str
    subject: str
    handler: HeadedHandler
    is_own: bool = False
    lane: Callable[[str], str] | None = None
    caller_at: int | None = None
    family: Family = Family.OTHERS
    caller_max_concurrent: int | None = None
    for_many: Collection[str] = ()
    at_most: int | None = None
    counts: Callable[[bytes], int] | None = None
    searches: Callable[[bytes], bool] | None = None
    max_bytes: int = USUAL_BYTES
    is_work: bool = False


@dataclass(frozen=True)
class Bounds:
    """How much a replica takes on.

    Attributes:
        max_concurrent: How many requests are answered side by side.
        max_queued: How many more may wait for that.
        max_queued_bytes: How much memory those may take.
        lane_max_concurrent: How many of one lane are answered side by side.
        lane_max_queued: How many of one lane may wait.
        caller_max_queued: How many of one caller may wait.
        caller_max_queued_bytes: How much memory those may take.
        rates: How often one caller may ask, by family.
    """

    max_concurrent: int = 1_000
    max_queued: int = 50_000
    max_queued_bytes: int = 128_000_000
    lane_max_concurrent: int = 64
    lane_max_queued: int = 4_000
    caller_max_queued: int = 64
    caller_max_queued_bytes: int = 1_000_000
    rates: Mapping[Family, Rate] = field(default_factory=lambda: RATES)


USUAL_BOUNDS = Bounds()


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
