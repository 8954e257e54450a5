"""Admission of requests: the host, authentication, the limits of the caller's key, and the limits of the body."""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from prometheus_client import Counter
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ioa.errors import IoaError
from ioa_gateway.context import Gateway
from ioa_gateway.problems import respond_to_error
from ioa_gateway.request_body import limited, read_json
from ioa_gateway.security_headers import SECURITY_HEADERS, check_host

_PROTECTED = ("/v1/", "/a2a/", "/mcp")
_PUBLIC = ("/v1/session", "/v1/openapi.json", "/a2a/network/.well-known/agent-card.json")
"""Paths below the protected ones that need no key."""
_METHODS = ("GET", "POST", "PUT", "DELETE")
_UPLOADS = "/v1/uploads/"
_MAX_BODY_BYTES = {_UPLOADS: 100_000_000, "/a2a/": 5_000_000, "/mcp": 1_000_000, "": 256_000}
"""Maximum size of a body by the beginning of the path. The target of a request can also be `*` or a URL."""

_log = structlog.get_logger(__name__)

requests = Counter("ioa_gateway_requests_total", "Requests by HTTP, by route and status", ["route", "status"])


class Admission:
    """Rejects requests of other sites' pages, and authenticates requests before their bodies are read.

    A request counts for the limits of its key until its response is sent. Handlers find the context in the state of the request,
    as `call`. `hosts` contains the scheme of each accepted host.
    """

    def __init__(self, app: ASGIApp, gateway: Gateway, hosts: Mapping[str, str]) -> None:
        self._app = app
        self._gateway = gateway
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit a request, or respond with a problem."""
        path, has_begun = scope["path"], False

        async def send_secured(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if label := _label(scope):
                    requests.labels(label, message["status"]).inc()
            has_begun = True
            await send(message)

        max_bytes = next(limit for start, limit in _MAX_BODY_BYTES.items() if path.startswith(start))
        try:
            await self._admit(scope, limited(receive, max_bytes), send_secured)
        except (ClientDisconnect, HTTPException, IoaError, RuntimeError) as error:
            # A RuntimeError is Starlette's report of an error after the start of a response.
            cause = error.__cause__ if isinstance(error, RuntimeError) else error
            if not isinstance(cause, ClientDisconnect | HTTPException | IoaError):
                raise
            if has_begun:
                _log.warning("response_aborted", error=str(cause))  # the server closes the connection
            else:
                await respond_to_error(cause, path)(scope, receive, send_secured)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, path, keyring = MutableHeaders(scope=scope), scope["path"], self._gateway.keyring
        headers["host"], scope["scheme"] = check_host(headers, self._hosts)
        if path in _PUBLIC or not path.startswith(_PROTECTED):
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        caller = await keyring.let_in(request)
        with self._gateway.limits.request(caller.key_id):
            async with keyring.cancel_on_revocation(caller):
                if not path.startswith(_UPLOADS):
                    receive = await read_json(receive, rejects=path.startswith("/v1/"))
                request.state.call = self._gateway.call(caller, request.headers, receive)
                await self._app(scope, receive, send)


def _label(scope: Scope) -> str:
    """Return the route of a request as metrics name it: `GET /v1` if it was rejected before; empty for files of the page."""
    path, method = scope["path"], scope["method"]
    if path.startswith(("/a2a/", "/mcp")):
        return str(path.split("/")[1].upper())
    route = scope.get("route")
    if not path.startswith("/v1/") or method not in _METHODS:
        return ""
    return f"{method} {'/v1' if route is None else route.path}"
