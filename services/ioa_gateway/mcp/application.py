"""MCP over streamable HTTP without sessions: any replica authenticates and serves each request."""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ioa_gateway.calls import check_json, replayed
from ioa_gateway.mcp.tools import CALL, create_server
from ioa_gateway.reach import Reach

_MAX_BYTES = 1_000_000


def create_application(reach: Reach) -> ASGIApp:
    """Return the ASGI application at `/mcp`."""
    server = create_server()._lowlevel_server

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        call = reach.admitted(await reach.keyring.let_in(request), request)
        with call.limits.request(call.caller.key_id):
            body = await replayed(request, reach.sent(call.caller, request, _MAX_BYTES), check_json)
            manager = StreamableHTTPSessionManager(server, stateless=True)
            async with manager.run():
                await manager.handle_request({**scope, CALL: call}, body, send)

    return answer
