"""HTTP error responses: problem details (RFC 9457) from the table of `ioa.errors`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import timedelta

import structlog
from starlette.responses import Response

from ioa.client.seat import TooLateError
from ioa.errors import (
    ConflictError,
    ForbiddenError,
    InvalidInputError,
    IoaError,
    NoAgentError,
    NotFoundError,
    OverQuotaError,
    PayloadTooLargeError,
    RateLimitedError,
    StoreFullError,
    UnauthenticatedError,
    UnavailableError,
    row_of,
)
from ioa.protocol.model import Model

MEDIA_TYPE = "application/problem+json"

STATUS: Mapping[type[IoaError], int] = {
    InvalidInputError: 422,
    PayloadTooLargeError: 413,
    UnauthenticatedError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    NoAgentError: 409,
    OverQuotaError: 409,
    RateLimitedError: 429,
    StoreFullError: 507,
    UnavailableError: 503,
    IoaError: 500,
}
"""A class that is missing here has the status of its nearest base."""

_SOON = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


class Problem(Model):
    """What went wrong. `hint` says what to do next, where there is something to do, and `legal` what could be said instead."""

    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None
    legal: tuple[str, ...] | None = None


def status_of(kind: type[IoaError]) -> int:
    """Return the HTTP status of a class of errors."""
    return next(STATUS[base] for base in kind.__mro__ if base in STATUS)


def problem_of(error: Exception) -> Problem:
    """Describe an error. The details of a bug are only logged."""
    if not isinstance(error, IoaError):
        return problem(500, row_of(error).wire_code, "This is a bug of the gateway; its log says what went wrong.")
    told = problem(status_of(type(error)), row_of(error).wire_code, error.message, error.hint)
    return told.model_copy(update={"legal": tuple(error.legal)}) if isinstance(error, TooLateError) else told


def problem(status: int, code: str, detail: str, hint: str = "") -> Problem:
    """Describe what went wrong."""
    title = code.replace("_", " ").capitalize()
    return Problem(type=f"urn:ioa:error:{code}", title=title, status=status, detail=detail, hint=hint or None)


def answer_to(error: Exception, tells: Callable[[Problem], Problem] = lambda problem: problem) -> Response:
    """Return the response to an error, in the form that clients of the route expect."""
    headers = dict[str, str]()
    if not isinstance(error, IoaError):
        _log.error("request_failed", exc_info=error)
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = str(math.ceil((error.retry_after or _SOON).total_seconds()))
    return tell(tells(problem_of(error)), headers)


def tell(told: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a problem."""
    return Response(told.model_dump_json(exclude_none=True), told.status, headers, MEDIA_TYPE)
