"""The ASGI application of the gateway: the routes of the table, the page, A2A and MCP, protected by the guard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import structlog
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ioa.cancellation import fail_after
from ioa.errors import InvalidInputError, IoaError, UnavailableError
from ioa.protocol.model import Model
from ioa.protocol.validation_errors import in_words
from ioa_gateway.api_table import PREFIX, TABLE
from ioa_gateway.callers import NOBODY
from ioa_gateway.calls import MAX_BODY_BYTES, ApiRow, Nothing
from ioa_gateway.entrances import Entrance
from ioa_gateway.guard import OriginGuard
from ioa_gateway.openapi import description
from ioa_gateway.page_files import page_routes
from ioa_gateway.problems import answer_to, problem, tell
from ioa_gateway.reach import Reach, requests

_JSON = "application/json"

_log = structlog.get_logger(__name__)


def create_app(reach: Reach, guard: Callable[[ASGIApp], OriginGuard]) -> ASGIApp:
    """Make the application.

    Args:
        reach: The parts of the gateway that all requests share.
        guard: Wraps the application in the check of hosts and origins.
    """

    async def describe(_request: Request) -> Response:
        return Response(await asyncio.to_thread(description), media_type=_JSON)  # the first one takes a quarter of a second

    table = [*_table(reach)]
    routes: list[BaseRoute] = [*table, Route(f"{PREFIX}/openapi.json", describe), *page_routes()]
    a2a = Entrance(reach, "A2A", "ioa_gateway.a2a.application", "a2a")
    routes += [Mount("/a2a", a2a), Route("/.well-known/agent-card.json", a2a)]
    routes.append(Route("/mcp", Entrance(reach, "MCP", "ioa_gateway.mcp.application", "mcp"), methods=["POST"]))
    return guard(Starlette(routes=routes, exception_handlers={HTTPException: _refused}))


def _table(reach: Reach) -> Iterator[Route]:
    rows: dict[str, dict[str, ApiRow]] = {}
    for row in TABLE:
        rows.setdefault(row.path, {})[row.method] = row
    for path, of_path in rows.items():  # one route for all methods, so that a 405 response lists them
        route = Route(PREFIX + path, _Endpoint(of_path, reach), methods=[*of_path])
        if route.methods is not None:
            route.methods.discard("HEAD")  # of a stream it would never end
        yield route


class _Endpoint:
    """Handles the requests of one path. A request counts for the limits of its key until its response is sent."""

    def __init__(self, rows: Mapping[str, ApiRow], reach: Reach) -> None:
        self._rows = rows
        self._reach = reach

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        request = Request(scope, receive, send)
        row = self._rows[request.method]
        with ExitStack() as held:
            response = await self._response(row, request, held)
            requests.labels(f"{row.method} {row.path}", response.status_code).inc()
            try:
                await response(scope, receive, send)
            except IoaError as error:  # uvicorn closes the connection before the end of the response
                _log.warning("response_aborted", error=str(error))

    async def _response(self, row: ApiRow, request: Request, held: ExitStack) -> Response:
        try:
            return await _answered(row, self._reach, request, held)
        except ClientDisconnect:
            return Response(status_code=499)
        except HTTPException as error:
            return await _refused(request, error)
        except Exception as error:  # noqa: BLE001 - the client receives a response, the log contains the bug
            return answer_to(error, row.tells)


async def _answered(row: ApiRow, reach: Reach, request: Request, held: ExitStack) -> Response:
    caller = NOBODY
    if row.scopes:
        caller = await reach.keyring.let_in(request)
        held.enter_context(reach.limits.request(caller.key_id))
        caller.check(*row.scopes)
    query = _query(row.query, request)
    sent = b""
    if row.body is not Nothing:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return tell(problem(415, "invalid_input", f"The body is not {_JSON}.", "Set Content-Type."))
        sent = b"".join([part async for part in reach.sent(caller, request, MAX_BODY_BYTES)])
    call = reach.admitted(caller, request)
    try:
        async with fail_after(row.within.total_seconds()):
            handled = row.respond(call, query, sent)
            return await (call.while_let_in(handled) if row.scopes else handled)
    except TimeoutError:
        raise UnavailableError("The system did not answer in time.", hint="Try again soon; nothing is lost.") from None


def _query(kind: type[Model], request: Request) -> Model:
    try:
        return kind.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise InvalidInputError(f"The query cannot be read: {in_words(error, 'query')}.") from None


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "it is registered for these alone"
    code = {404: "not_found"}.get(error.status_code, "invalid_input")
    return tell(problem(error.status_code, code, f"{error.detail.rstrip('.')}."), error.headers)
