"""Admission of requests: authentication, the limits of the caller's key, and the limits of the body."""

from __future__ import annotations

import structlog
from prometheus_client import Counter
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ioa.errors import IoaError
from ioa_gateway.context import Gateway
from ioa_gateway.problems import respond_to_error
from ioa_gateway.request_body import limited

_PROTECTED = ("/v1/", "/a2a/", "/mcp")
_PUBLIC = ("/v1/session", "/v1/openapi.json", "/a2a/network/.well-known/agent-card.json")
"""Paths below the protected ones that need no key."""
_METHODS = ("GET", "POST", "PUT", "DELETE")
_MAX_BODY_BYTES = {"/v1/uploads/": 100_000_000, "/a2a/": 5_000_000, "/mcp": 1_000_000, "/": 256_000}
"""Maximum size of a body by the beginning of the path."""

_log = structlog.get_logger(__name__)

requests = Counter("ioa_gateway_requests_total", "Requests by HTTP, by route and status", ["route", "status"])


class Admission:
    """Authenticates requests before their bodies are read. A request counts for the limits of its key until its response is sent.

    Handlers find the context in the state of the request, as `call`.
    """

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self._app = app
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request, or respond with a problem."""
        request, path, keyring = HTTPConnection(scope), scope["path"], self._gateway.keyring
        has_begun = False

        async def counted(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start" and (label := _label(scope)):
                requests.labels(label, message["status"]).inc()
            has_begun = True
            await send(message)

        limited_receive = limited(receive, next(limit for start, limit in _MAX_BODY_BYTES.items() if path.startswith(start)))
        try:
            if path in _PUBLIC or not path.startswith(_PROTECTED):
                await self._app(scope, limited_receive, counted)
                return
            caller = await keyring.let_in(request)
            with self._gateway.limits.request(caller.key_id):
                async with keyring.cancel_on_revocation(caller):
                    request.state.call = self._gateway.call(caller, request.headers, limited_receive)
                    await self._app(scope, limited_receive, counted)
        except (IoaError, RuntimeError) as error:
            # A RuntimeError is Starlette's report of an error after the start of a response.
            cause = error if isinstance(error, IoaError) else error.__cause__
            if not isinstance(cause, IoaError):
                raise
            if has_begun:
                _log.warning("response_aborted", error=str(cause))  # the server closes the connection
            else:
                await respond_to_error(cause, path)(scope, receive, counted)


def _label(scope: Scope) -> str:
    """Return the route of a request as metrics name it: `GET /v1` if it was rejected before; empty for files of the page."""
    path, method = scope["path"], scope["method"]
    if path.startswith(("/a2a/", "/mcp")):
        return str(path.split("/")[1].upper())
    route = scope.get("route")
    if not path.startswith("/v1/") or method not in _METHODS:
        return ""
    return f"{method} {'/v1' if route is None else route.path}"
