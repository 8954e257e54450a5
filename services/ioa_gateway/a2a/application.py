"""A2A by HTTP: `/a2a/network` takes goals for anybody, and `/a2a/agents/{pool}` those for one pool."""

from __future__ import annotations

import logging
import re

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
from ioa_gateway.a2a.asking import ASKED, AdmittedRequest, is_old
from ioa_gateway.a2a.cards import card_of_pool, written, written_card_of_network
from ioa_gateway.a2a.handler import Tasks
from ioa_gateway.calls import MAX_BODY_BYTES, announced, check_json, replayed
from ioa_gateway.reach import Reach

_MAX_BYTES = 5_000_000
"""Maximum bytes of a message with its files. The library keeps a message in memory until it is answered."""
_MAX_VERSION_CHARS = 64
_HISTORY = re.compile(r"(-?[0-9]{1,9})?")
"""As many digits as are surely within 32 bits."""

_REFUSALS = ("Failed to validate", "Failed to parse")
"""How the library's lines begin that show a traceback of a request which it refuses."""


def _is_own_fault(record: logging.LogRecord) -> bool:
    """Whether the library tells of a fault of the server's, as a filter of its log.

    It warns of each request that it refuses, with words of the caller's, who is told the same.
    """
    return record.levelno >= logging.ERROR and not record.msg.startswith(_REFUSALS)


for _name in ("a2a.server.routes.jsonrpc_dispatcher", "a2a.compat.v0_3.jsonrpc_adapter", "a2a.utils.error_handlers"):
    logging.getLogger(_name).addFilter(_is_own_fault)


class _Contexts(ServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        """Hand on who asks, and by which headers."""
        return ServerCallContext(state={ASKED: request.scope[ASKED], "headers": dict(request.headers)})


def create_application(reach: Reach) -> ASGIApp:
    """Make what answers below `/a2a`."""
    tasks, contexts = Tasks(), _Contexts()
    rest = create_rest_routes(tasks, contexts, enable_v0_3_compat=True)
    routes = [
        *create_jsonrpc_routes(tasks, "/", contexts, enable_v0_3_compat=True),
        *(route for route in rest if not isinstance(route, Mount)),  # of tenants, which would take every other path
    ]
    router = Router(routes, redirect_slashes=False)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        pool, path = _parted(scope["path"].removeprefix(scope["root_path"]))
        base_url = f"{request.url.scheme}://{request.headers['host']}"
        url = f"{base_url}/a2a/{'network' if pool is None else f'agents/{pool}'}"
        is_card = path in (AGENT_CARD_WELL_KNOWN_PATH, "/.well-known/agent.json")
        names_none = not _version_in(request)
        _check_history(request)
        if is_card and pool is None:
            await written_card_of_network(url, is_old=names_none).answer(request)(scope, receive, send)
            return
        call = reach.admitted(await reach.keyring.let_in(request), request)
        if is_card and pool is not None:
            call.caller.check(KeyScope.AGENTS_READ)
            with call.limits.request(call.caller.key_id):
                card = await card_of_pool(pool, url, call)
            await written(card, url, is_old=names_none).answer(request)(scope, receive, send)
            return
        call.caller.check(KeyScope.GOALS_READ)  # whatever is asked; nothing of a body is read before that
        with call.limits.request(call.caller.key_id):
            most = _MAX_BYTES if KeyScope.GOALS_WRITE in call.caller.scopes else MAX_BODY_BYTES
            if announced(request, most) > MAX_BODY_BYTES:
                call.caller.check(KeyScope.GOALS_WRITE)  # only a message that begins a task has files
            try:
                again = await replayed(request, reach.sent(call.caller, request, most), check_json)
            except InvalidInputError as error:
                if path != "/" or isinstance(error, PayloadTooLargeError):
                    raise
                await JSONResponse(build_error_response(None, JSONParseError(message=str(error))))(scope, receive, send)
                return
            admitted = AdmittedRequest(call, pool, base_url, call.left)
            await router({**scope, "path": path, "root_path": "", ASKED: admitted}, again, send)

    return answer


def _version_in(request: Request) -> str:
    """Return which version a client names; the library takes thousands of digits for a bug of its own.

    Raises:
        InvalidInputError: It is too long for one.
    """
    version: str = request.headers.get("a2a-version", "")
    if len(version) > _MAX_VERSION_CHARS:
        raise InvalidInputError("The header A2A-Version names no version.", hint="Name 1.0, or leave it out for 0.3.")
    return version


def _check_history(request: Request) -> None:
    """See that the library of 0.3 can read what it reads of a query: it takes what is no number for a bug of its own.

    Raises:
        InvalidInputError: It cannot.
    """
    if is_old(request.headers) and not _HISTORY.fullmatch(request.query_params.get("historyLength", "")):
        raise InvalidInputError("historyLength is no number, or has more than nine digits.")


def _parted(path: str) -> tuple[PoolId | None, str]:
    """Tell for which pool a path is, None for all agents together, and what is left of it."""
    kind, _, rest = path.removeprefix("/").partition("/")
    if kind == ".well-known":
        return None, path
    if kind == "network":
        return None, f"/{rest}"
    name, _, rest = rest.partition("/")
    if kind != "agents" or not name:
        raise NotFoundError(f"There is nothing at {path[:100]!r}.", hint="There are /a2a/network and /a2a/agents/{pool}.")
    return PoolId(parse_agent_id(name)), f"/{rest}"
