"""A2A by HTTP: `/a2a/network` accepts goals for any agent, `/a2a/agents/{pool}` for the agents of one pool."""

from __future__ import annotations

import logging
import re

from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError, InvalidParamsError
from google.protobuf.json_format import ParseError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Router
from starlette.types import Message, Receive, Scope, Send

from ioa.protocol.ids import PoolId, parse_agent_id
from ioa.protocol.operation.api_keys import Scope as KeyScope
from ioa_gateway.a2a.a2a_cards import NETWORK, card_response, find_card
from ioa_gateway.a2a.handler import Tasks
from ioa_gateway.a2a.old_clients import encodes_twice
from ioa_gateway.context import ApiCall

_PATH = re.compile(r"^(?:/network|/agents/([^/]+))?(/.*)?$", re.DOTALL)
"""The pool of a path, if any, and the path below it."""

logging.getLogger("a2a").setLevel(logging.CRITICAL)  # its lines about invalid requests contain texts of users


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Handle a request below `/a2a`."""
    request = Request(scope, receive)
    name, path = _PATH.findall(scope["path"].removeprefix(scope["root_path"]))[0]
    pool, path = PoolId(parse_agent_id(name)) if name else None, path or "/"
    base_url = f"{request.url.scheme}://{request.headers['host']}"
    is_card, card = path == AGENT_CARD_WELL_KNOWN_PATH, NETWORK
    if pool is not None:
        request.state.call.caller.check(KeyScope.AGENTS_READ if is_card else KeyScope.GOALS_READ)
        card = await find_card(pool, request.state.call)
    if is_card:
        url = f"{base_url}/a2a/{'network' if pool is None else f'agents/{pool}'}"
        await card_response(card, url, request)(scope, receive, send)
        return
    call: ApiCall = request.state.call
    call.caller.check(KeyScope.GOALS_READ)
    content_type = request.headers.get("content-type", "").partition(";")[0].lower()
    if (request.method, path) == ("POST", "/") and content_type != "application/json":
        raise HTTPException(415, "The body is not application/json.")
    encodes_twice.set(request.headers.get("user-agent", "").startswith("python-httpx"))
    await _respond(Tasks(call, pool, base_url), {**scope, "path": path, "root_path": ""}, receive, send)


async def _respond(tasks: Tasks, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the response of the library, unless an error decides its status before the first byte of its body.

    Raises:
        Exception: The error of the request, see `Tasks.error`; it is only logged if the response has begun.
    """
    start: Message | None = None
    has_begun = False

    async def send_without_error(message: Message) -> None:
        nonlocal start, has_begun
        if start is None:
            start = message
        elif has_begun or tasks.error is None:
            if not has_begun:
                await send(start)
            has_begun = True
            await send(message)

    rest = [one for one in create_rest_routes(tasks, enable_v0_3_compat=True) if not isinstance(one, Mount)]  # mounts are tenants
    routes = [*create_jsonrpc_routes(tasks, "/", enable_v0_3_compat=True), *rest]
    try:
        await Router(routes, redirect_slashes=False)(scope, receive, send_without_error)
    except (A2AError, ParseError, ValueError) as error:  # of a stream of A2A 0.3 by HTTP+JSON
        if has_begun:
            raise
        if tasks.error is None:
            payload = build_rest_error_payload(InvalidParamsError(str(error)) if isinstance(error, ValueError) else error)
            await JSONResponse(payload, payload["error"]["code"])(scope, receive, send)
    if tasks.error is not None:
        raise tasks.error
