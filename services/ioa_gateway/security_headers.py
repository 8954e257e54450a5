"""Checks of `Host` and `Origin`, and security headers of every response.

They protect against pages of other sites that make a browser send requests here, also by DNS rebinding.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ioa_gateway.problems import problem, respond

_SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-src 'self';"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class OriginGuard:
    """Rejects requests for other hosts, and requests of other sites' pages.

    Args:
        app: The application.
        hosts: The scheme of each host, as `Host` names it.
    """

    def __init__(self, app: ASGIApp, hosts: Mapping[str, str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request, or pass it to the application."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        hosts = [host.lower() for host in headers.getlist("host")]
        scheme = self._hosts.get(hosts[0]) if len(hosts) == 1 else None

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                for name, value in _SECURITY.items():
                    response_headers.setdefault(name, value)
            await send(message)

        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy in front may read another length
            rejection = problem(400, "invalid_input", "The request has both Content-Length and Transfer-Encoding.", "Send one.")
        elif scheme is None:
            rejection = problem(421, "forbidden", "This server has another name.", "IOA_HTTP_URLS sets its names.")
        elif any(origin.lower() != f"{scheme}://{hosts[0]}" for origin in headers.getlist("origin")):
            rejection = problem(403, "forbidden", "Pages of other sites have no access.")
        else:
            admitted = headers.mutablecopy()
            admitted["host"] = hosts[0]  # in lower case
            await self._app({**scope, "scheme": scheme, "headers": admitted.raw}, receive, secured)
            return
        await respond(rejection, scope["path"], {"Connection": "close"})(scope, receive, secured)
