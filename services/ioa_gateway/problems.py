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
from ioa.errors import ERRORS, IoaError, UnauthenticatedError, UnavailableError, row_of
from ioa.protocol.goals import Reason
from ioa.protocol.model import Model
from ioa.protocol.texts import why_of

MEDIA_TYPE = "application/problem+json"
CHAT_PATHS = ("/v1/chat/completions", "/v1/models")
"""Paths whose clients read errors in the form of OpenAI's API."""
_STATUS: Mapping[str, int] = {
    "invalid_input": 422,
    "payload_too_large": 413,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "no_agent": 409,
    "over_quota": 409,
    "rate_limited": 429,
    "store_full": 507,
    "unavailable": 503,
    "internal": 500,
}
"""Statuses of codes in `ERRORS`. A class with another code has the status of its nearest base."""

_CODES = {403: "forbidden", 404: "not_found", 421: "forbidden"}
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
    match error:
        case GoalFailedError():
            return problem(422, str(error.reason), error.message)
        case IoaError():
            codes = [ERRORS[base].wire_code for base in type(error).__mro__ if base in ERRORS]
            status = next(_STATUS[code] for code in codes if code in _STATUS)
            legal = tuple(error.legal) if isinstance(error, TooLateError) else None
            described = problem(status, codes[0], error.message, error.hint)
            return described.model_copy(update={"legal": legal})
        case RequestValidationError():
            first = error.errors()[0]
            place = ".".join(str(part)[:64] for part in first["loc"])
            return problem(422, "invalid_input", f"{place}: {why_of(first)[:300]}.")
        case HTTPException():
            code = _CODES.get(error.status_code, "invalid_input")
            return problem(error.status_code, code, f"{error.detail.rstrip('.')}.")
        case ClientDisconnect():
            return problem(499, "invalid_input", "The client has disconnected.")
    return problem(500, row_of(error).wire_code, "This is a bug of the gateway; its log contains the details.")


def chat_error(described: Problem) -> dict[str, Any]:
    """Return a problem as clients of OpenAI's API read it."""
    message = " ".join(filter(None, (described.detail, described.hint)))
    return {"message": message, "type": described.type, "param": None, "code": described.type.rpartition(":")[2]}


def respond_to_error(error: Exception, path: str) -> Response:
    """Return the response to an exception, in the form that clients of the path expect."""
    if isinstance(error, HTTPException) and isinstance(error.__cause__, IoaError):
        error = error.__cause__  # FastAPI wraps errors of reading a body
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if isinstance(error, UnauthenticatedError):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = str(math.ceil((error.retry_after or _SOON).total_seconds()))
    described = problem_of(error)
    content = described.model_dump(mode="json", exclude_none=True)
    if path in CHAT_PATHS:
        content["error"] = chat_error(described)
    return JSONResponse(content, described.status, headers, MEDIA_TYPE)


async def _on_error(request: Request, error: Exception) -> Response:
    return respond_to_error(error, request.url.path)


EXCEPTION_HANDLERS: Mapping[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = dict.fromkeys(
    (IoaError, RequestValidationError, HTTPException, ClientDisconnect, Exception), _on_error
)
