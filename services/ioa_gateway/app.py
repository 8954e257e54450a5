"""The gateway as an application: the routes of the table, behind the guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import Any

from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ioa.errors import PayloadTooLargeError, UnavailableError
from ioa.protocol.codec import validate
from ioa_gateway.api_table import PREFIX, TABLE
from ioa_gateway.callers import NOBODY
from ioa_gateway.calls import MAX_BODY_BYTES, MAX_FILE_BYTES, ApiCall, ApiRow, Nothing
from ioa_gateway.guard import Guard
from ioa_gateway.openapi import description
from ioa_gateway.problems import answer_to, problem, tell
from ioa_gateway.reach import Reach

BODY_SILENCE = timedelta(seconds=60)
"""How long a body may go without a byte."""

requests = Counter("ioa_gateway_requests_total", "Requests by HTTP, by route and status", ["route", "status"])

_JSON = "application/json"


def create_app(reach: Reach, guard: Callable[[ASGIApp], Guard]) -> ASGIApp:
    """Make the application.

    Args:
        reach: The system.
        guard: Looks at a request before anything else does.
    """

    async def describe(_request: Request) -> Response:
        return Response(description(), media_type=_JSON)

    routes = [Route(PREFIX + row.path, partial(_answer, row, reach), methods=[row.method]) for row in TABLE]
    for route in routes:
        if route.methods is not None:
            route.methods.discard("HEAD")  # of a stream it would never end
    routes.append(Route(f"{PREFIX}/openapi.json", describe))
    return guard(Starlette(routes=routes, exception_handlers={HTTPException: _refused}))


async def _answer(row: ApiRow[Any, Any], reach: Reach, request: Request) -> Response:
    try:
        response = await _answered(row, reach, request)
    except ClientDisconnect:
        response = Response(status_code=499)  # nobody reads it
    except HTTPException as error:
        response = await _refused(request, error)
    except Exception as error:  # noqa: BLE001 - whoever asks gets an answer, the log the bug
        response = answer_to(error)
    requests.labels(f"{row.method} {row.path}", response.status_code).inc()
    return response


async def _answered(row: ApiRow[Any, Any], reach: Reach, request: Request) -> Response:
    caller = NOBODY
    if row.scope is not None:
        caller = await reach.keyring.let_in(request)
        caller.check(row.scope)
    query = validate(row.query, dict(request.query_params))
    body = None
    if row.body is Nothing:
        body = Nothing()
    else:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return tell(problem(415, "invalid_input", f"The body is to be {_JSON}.", "Say so in Content-Type."))
        body = row.read(b"".join([part async for part in _sent(request, MAX_BODY_BYTES)]))
    call = ApiCall(
        caller,
        reach.client_of(caller.user),
        reach.rooms,
        reach.keyring,
        reach.limits,
        request.path_params,
        request.headers,
        is_secure=request.url.scheme == "https",
        sent=_sent(request, MAX_FILE_BYTES),
    )
    if not reach.is_there():
        raise UnavailableError("The system is out of reach.", hint="Try again soon; nothing is lost.")
    try:
        async with asyncio.timeout(row.within.total_seconds()):
            return await row.handle(call, query, body)
    except TimeoutError:
        raise UnavailableError("The system did not answer in time.", hint="Try again soon; nothing is lost.") from None


async def _sent(request: Request, most: int) -> AsyncIterator[bytes]:
    size, parts = 0, request.stream()
    while True:
        try:
            async with asyncio.timeout(BODY_SILENCE.total_seconds()):
                part = await anext(parts, None)
        except TimeoutError:
            raise HTTPException(408, "The body did not come.") from None
        if part is None:
            return
        size += len(part)
        if size > most:
            raise PayloadTooLargeError(
                f"The body has more than {most:,} bytes.", hint="Files go to /v1/uploads, up to 100 MB each."
            )
        yield part


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these alone"
    code = {404: "not_found"}.get(error.status_code, "invalid_input")
    return tell(problem(error.status_code, code, f"{error.detail.rstrip('.')}."), error.headers)
