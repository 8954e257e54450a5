"""MCP over streamable HTTP, without sessions: each request is let in by its key and served by itself, at any replica."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from datetime import timedelta

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ioa_gateway.bodies import check_body
from ioa_gateway.calls import MAX_BODY_BYTES, announced, replayed
from ioa_gateway.mcp.tools import ANSWERED, CALL, create_server
from ioa_gateway.reach import Reach

_MAX_BYTES = 1_000_000
_CALL, _READING = "tools/call", "resources/read"
"""What may wait, and has bounds of its own: how large an answer of a tool is shows when it is there. All else is answered at once,
and costs the more the longer the answer is."""
_PATIENCE = timedelta(seconds=10)


def create_application(reach: Reach) -> ASGIApp:
    """Make what answers at `/mcp`."""
    server = create_server()._lowlevel_server

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        call = reach.admitted(await reach.keyring.let_in(request), request)
        # Any tool may wait, and which one is called is seen behind the head of an answer: each call takes a place.
        user = call.caller.user
        async with AsyncExitStack() as held:
            held.enter_context(call.limits.request(user))
            held.enter_context(call.limits.new_stream(call.caller))
            if announced(request, _MAX_BYTES) > MAX_BODY_BYTES:
                held.enter_context(call.limits.large_body(user))

            method = ""

            async def read(body: bytes) -> bytes:
                nonlocal method
                check_body(body)
                held.enter_context(call.limits.held(user, len(body)))
                method = _method_of(body)
                return body

            with call.limits.coming_body(user):
                again = await replayed(request, reach.sent(call.caller, request, _MAX_BYTES), read)
            if method != _CALL:  # a file that is read is held until it is sent
                turns = call.limits.whole_files if method == _READING else call.limits.told
                await held.enter_async_context(turns.slot(user, _PATIENCE))

            def answered(size: int) -> None:
                held.enter_context(call.limits.answer(user, size))

            manager = StreamableHTTPSessionManager(server, stateless=True)
            async with manager.run():
                await manager.handle_request({**scope, CALL: call, ANSWERED: answered}, again, send)

    return answer


def _method_of(body: bytes) -> str:
    try:
        asked = json.loads(body)
    except ValueError:
        return ""  # which the library tells
    return str(asked.get("method")) if isinstance(asked, dict) else ""
