"""The ASGI application of the gateway: the API, the page, A2A and MCP, protected by admission."""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from ioa.distribution import installed_version
from ioa_gateway.admission import Admission
from ioa_gateway.api import (
    agent_routes,
    agui,
    chat_routes,
    file_routes,
    goal_routes,
    group_routes,
    question_routes,
    seat_routes,
    session,
    team_routes,
    webhook_routes,
)
from ioa_gateway.context import Gateway
from ioa_gateway.optional_mounts import OptionalMount
from ioa_gateway.problems import EXCEPTION_HANDLERS, MEDIA_TYPE, Problem
from ioa_gateway.static_page import page_routes

_ROUTES = {
    "goals": goal_routes,
    "groups": group_routes,
    "files": file_routes,
    "agents": agent_routes,
    "questions": question_routes,
    "seats": seat_routes,
    "teams": team_routes,
    "webhooks": webhook_routes,
    "chat": chat_routes,
    "agui": agui,
    "session": session,
}
"""The routes of each tag in the OpenAPI description."""

_PROBLEM = {
    "description": "The request was rejected, or the system is not available: problem details (RFC 9457).",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


@functools.cache
def create_api() -> FastAPI:
    """Return the API below `/v1`, once per process: FastAPI builds the routes at the first request, in 150 ms."""
    api = FastAPI(
        title="Internet of Agents",
        version=installed_version(),
        openapi_url=None,
        responses={"default": _PROBLEM},
        generate_unique_id_function=lambda route: f"{route.tags[0]}_{route.name}",
    )
    for tag, routes in _ROUTES.items():
        api.include_router(routes.router, prefix="/v1", tags=[tag])
    return api


@functools.cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI description of the API, without schemas that nothing refers to."""
    document = create_api().openapi()
    schemas = document["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema()
    while unused := schemas.keys() - set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))):
        for name in unused:
            del schemas[name]
    return document


def create_app(gateway: Gateway, hosts: Mapping[str, str]) -> ASGIApp:
    """Return the application, which accepts the hosts with these schemes."""
    a2a, mcp = OptionalMount("a2a"), OptionalMount("mcp")
    app = FastAPI(
        openapi_url=None,
        exception_handlers=dict(EXCEPTION_HANDLERS),
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.keyring = gateway.keyring

    async def describe(_request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(describe_api))  # the first call takes a third of a second

    app.add_route("/v1/openapi.json", describe)
    app.router.routes += [*create_api().router.routes, *page_routes()]
    app.router.routes += [Mount("/a2a", a2a), Route("/.well-known/agent-card.json", a2a), Route("/mcp", mcp, methods=["POST"])]
    return Admission(app, gateway, hosts)
