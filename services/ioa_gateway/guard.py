"""What is looked at before anything else: whether a request means this server, and comes from a page of it if from any.

A page of another site can have its visitors' browsers send requests here, also to an address of their own machine (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ioa_gateway.problems import problem, tell

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
    """Let in requests that name one of these hosts, and no page of another one.

    Args:
        app: What is behind it.
        hosts: As `Host` names them, with the port unless it is that of the scheme, and the scheme by which browsers come to each.
    """

    def __init__(self, app: ASGIApp, hosts: Mapping[str, str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _secure(message)
            await send(message)

        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy in front may read another length
            refusal = problem(
                400, "invalid_input", "The request has both Content-Length and Transfer-Encoding.", "Send one of them."
            )
            await tell(refusal, {"Connection": "close"})(scope, receive, guarded)
            return
        named = [host.lower() for host in headers.getlist("host")]
        scheme = self._hosts.get(named[0]) if len(named) == 1 else None
        if scheme is None:
            told = problem(421, "forbidden", "This server has another name.", "Names of it are set by IOA_HTTP_URLS.")
            await tell(told)(scope, receive, guarded)
        elif any(origin.lower() != f"{scheme}://{named[0]}" for origin in headers.getlist("origin")):
            await tell(problem(403, "forbidden", "A page of another site may ask for nothing here."))(scope, receive, guarded)
        else:
            heads = headers.mutablecopy()
            heads["host"] = named[0]  # whatever is made of it behind, and kept, is of one form
            await self._app({**scope, "scheme": scheme, "headers": heads.raw}, receive, guarded)


def _secure(message: MutableMapping[str, Any]) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _SECURITY.items():
        headers.setdefault(name, value)
