"""A2A cards: of all agents together, and of the agents of a pool."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from a2a.compat.v0_3.conversions import to_compat_agent_card
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard as A2ACard
from google.protobuf.json_format import ParseDict
from starlette.requests import Request
from starlette.responses import Response

from ioa.distribution import installed_version
from ioa.errors import NotFoundError
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import ListAgents
from ioa_gateway.a2a.a2a_messages import is_old
from ioa_gateway.context import ApiCall

_MEDIA_TYPES = ("text/plain", "application/json", "application/octet-stream")


NETWORK = AgentCard(
    agent_id=AgentId("network"),
    pool=PoolId("network"),
    name="Internet of Agents",
    description="Finds the agents that fit a goal, has them work on it as a team, and answers with their conclusion.",
    version=installed_version(),
    tags=("team",),
)
"""The card of all agents together. It names none of them."""


async def find_card(pool: PoolId, call: ApiCall) -> AgentCard:
    """Return the card of an agent of a pool.

    Raises:
        NotFoundError: There is no such pool.
    """
    found = (await call.client.list_agents(ListAgents(name=AgentId(pool), limit=1))).agents
    if not found or found[0].card.pool != pool:
        raise NotFoundError(f"There is no pool {pool}.", hint="GET /v1/agents lists the agents with their pools.")
    return found[0].card


def card_response(agent: AgentCard, url: str, request: Request) -> Response:
    """Return the response with a card in the version of the client, or 304 if the client has it.

    A client that names no version gets the fields of both versions; the schema of 1.0 forbids the fields of 0.3.
    """
    card = _convert(agent, url)
    if is_old(request.headers):
        parsed = ParseDict(card, A2ACard())
        only_old = request.headers.get("a2a-version")
        card = to_compat_agent_card(parsed).model_dump(mode="json", exclude_none=True) if only_old else agent_card_to_dict(parsed)
    body = json.dumps(card, ensure_ascii=False).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "max-age=60", "Vary": "A2A-Version, Authorization"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def _convert(card: AgentCard, url: str) -> Mapping[str, Any]:
    """Return a card of A2A 1.0 in JSON. The first skill has the examples."""
    skills = [(skill.name, skill.description or card.description) for skill in card.skills] or [(card.name, card.description)]
    return {
        "name": card.name,
        "description": card.description,
        "version": card.version,
        "skills": [
            {
                "id": f"{card.pool}-{number}",
                "name": name,
                "description": description,
                "tags": card.tags or [card.pool],
                "examples": card.examples if number == 1 else [],
            }
            for number, (name, description) in enumerate(skills, 1)
        ],
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": version}
            for version in ("1.0", "0.3")
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": False},
        "securitySchemes": {"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"key": {}}}],
        "defaultInputModes": _MEDIA_TYPES,
        "defaultOutputModes": _MEDIA_TYPES,
    }
