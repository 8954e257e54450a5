"""A2A by HTTP: `/a2a/network` accepts goals for any agent, `/a2a/agents/{pool}` for one pool."""

from __future__ import annotations

import logging

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ioa.errors import InvalidInputError, NotFoundError, PayloadTooLargeError
from ioa.protocol.api_keys import Scope as KeyScope
from ioa.protocol.ids import PoolId, parse_agent_id
from ioa_gateway.a2a.cards import card_of_network, card_of_pool, card_response
from ioa_gateway.a2a.handler import Tasks
from ioa_gateway.a2a.requests import REQUEST, A2ARequest
from ioa_gateway.context import ApiCall
from ioa_gateway.request_body import check_json, replayed

for _name in ("a2a.server.routes.jsonrpc_dispatcher", "a2a.compat.v0_3.jsonrpc_adapter", "a2a.utils.error_handlers"):
    logging.getLogger(_name).disabled = True  # its lines about invalid requests contain texts of users


class _ContextBuilder(ServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        """Return a context with the authenticated request and its headers."""
        return ServerCallContext(state={REQUEST: request.scope[REQUEST], "headers": dict(request.headers)})


def create_application() -> ASGIApp:
    """Return the ASGI application below `/a2a`."""
    tasks, builder = Tasks(), _ContextBuilder()
    rest = create_rest_routes(tasks, builder, enable_v0_3_compat=True)
    routes = [
        *create_jsonrpc_routes(tasks, "/", builder, enable_v0_3_compat=True),
        *(route for route in rest if not isinstance(route, Mount)),  # mounts of tenants match every path
    ]
    router = Router(routes, redirect_slashes=False)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        pool, path = _pool_and_path(scope["path"].removeprefix(scope["root_path"]))
        base_url = f"{request.url.scheme}://{request.headers['host']}"
        url = f"{base_url}/a2a/{'network' if pool is None else f'agents/{pool}'}"
        is_card = path in (AGENT_CARD_WELL_KNOWN_PATH, "/.well-known/agent.json")
        if is_card and pool is None:
            await card_response(card_of_network(url), url, request)(scope, receive, send)
            return
        call: ApiCall = request.state.call
        if is_card and pool is not None:
            call.caller.check(KeyScope.AGENTS_READ)
            await card_response(await card_of_pool(pool, url, call), url, request)(scope, receive, send)
            return
        call.caller.check(KeyScope.GOALS_READ)
        try:
            body = await replayed(request, check_json)
        except InvalidInputError as error:
            if path != "/" or isinstance(error, PayloadTooLargeError):
                raise
            await JSONResponse(build_error_response(None, JSONParseError(message=str(error))))(scope, receive, send)
            return
        await router({**scope, "path": path, "root_path": "", REQUEST: A2ARequest(call, pool, base_url)}, body, send)

    return answer


def _pool_and_path(path: str) -> tuple[PoolId | None, str]:
    """Split a path into the pool, None for all agents, and the path below it."""
    kind, _, rest = path.removeprefix("/").partition("/")
    if kind == ".well-known":
        return None, path
    if kind == "network":
        return None, f"/{rest}"
    name, _, rest = rest.partition("/")
    if kind != "agents" or not name:
        raise NotFoundError(f"There is nothing at {path[:100]!r}.", hint="There are /a2a/network and /a2a/agents/{pool}.")
    return PoolId(parse_agent_id(name)), f"/{rest}"
