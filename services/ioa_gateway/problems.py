"""HTTP error responses: problem details (RFC 9457) from the table of `ioa.errors`."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

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
from ioa.protocol.goals import Reason
from ioa.protocol.model import Model
from ioa.protocol.texts import why_of
from ioa_gateway.request_body import BodyTimeoutError

MEDIA_TYPE = "application/problem+json"
CHAT_PATHS = ("/v1/chat/completions", "/v1/models")
"""Paths whose clients read errors in the form of OpenAI's API."""

STATUS: Mapping[type[IoaError], int] = {
    InvalidInputError: 422,
    PayloadTooLargeError: 413,
    BodyTimeoutError: 408,
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


class GoalFailedError(IoaError):
    """A goal was not reached. It is a failure of the goal and not of the gateway, so clients do not retry."""

    def __init__(self, message: str, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class Problem(Model):
    """An error: `hint` is the next step of the reader, if there is one, and `legal` lists legal alternatives."""

    type: str
    title: str
    status: int
    detail: str
    hint: str | None = None
    legal: tuple[str, ...] | None = None


def problem(status: int, code: str, detail: str, hint: str = "") -> Problem:
    """Describe an error."""
    title = code.replace("_", " ").capitalize()
    return Problem(type=f"urn:ioa:error:{code}", title=title, status=status, detail=detail, hint=hint or None)


def problem_of(error: Exception) -> Problem:
    """Describe an exception. The details of a bug are only logged."""
    if not isinstance(error, IoaError):
        return problem(500, row_of(error).wire_code, "This is a bug of the gateway; its log contains the details.")
    if isinstance(error, GoalFailedError):
        return problem(422, str(error.reason), error.message)
    status = next(STATUS[base] for base in type(error).__mro__ if base in STATUS)
    described = problem(status, row_of(error).wire_code, error.message, error.hint)
    return described.model_copy(update={"legal": tuple(error.legal)}) if isinstance(error, TooLateError) else described


def chat_error(described: Problem) -> dict[str, Any]:
    """Return a problem as clients of OpenAI's API read it."""
    message = " ".join(filter(None, (described.detail, described.hint)))
    return {"message": message, "type": described.type, "param": None, "code": described.type.rpartition(":")[2]}


def respond(described: Problem, path: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response with a problem, in the form that clients of the path expect."""
    content = described.model_dump(mode="json", exclude_none=True)
    if path in CHAT_PATHS:
        content["error"] = chat_error(described)
    return JSONResponse(content, described.status, headers, MEDIA_TYPE)


def respond_to_error(error: Exception, path: str) -> Response:
    """Return the response to an exception."""
    headers = dict[str, str]()
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = str(math.ceil((error.retry_after or _SOON).total_seconds()))
    return respond(problem_of(error), path, headers)


async def _on_error(request: Request, error: Exception) -> Response:
    return respond_to_error(error, request.url.path)


async def _on_validation_error(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    place = ".".join(str(part)[:64] for part in first["loc"])
    return respond_to_error(InvalidInputError(f"{place}: {why_of(first)[:300]}."), request.url.path)


async def _on_http_exception(request: Request, error: HTTPException) -> Response:
    if isinstance(error.__cause__, IoaError):  # FastAPI wraps errors of reading a body
        return respond_to_error(error.__cause__, request.url.path)
    code = "not_found" if error.status_code == STATUS[NotFoundError] else "invalid_input"
    return respond(problem(error.status_code, code, f"{error.detail.rstrip('.')}."), request.url.path, error.headers)


async def _on_disconnect(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)


EXCEPTION_HANDLERS: Mapping[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    IoaError: _on_error,
    RequestValidationError: _on_validation_error,
    HTTPException: _on_http_exception,
    ClientDisconnect: _on_disconnect,
    Exception: _on_error,
}
