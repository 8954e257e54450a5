"""MCP over streamable HTTP without sessions: any replica authenticates and serves each request."""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ioa_gateway.mcp.tools import create_server
from ioa_gateway.request_body import checked_json


def create_application() -> ASGIApp:
    """Return the ASGI application at `/mcp`."""
    server = create_server()._lowlevel_server

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await checked_json(request)
        manager = StreamableHTTPSessionManager(server, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, body, send)

    return answer
