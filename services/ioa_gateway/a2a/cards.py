"""A2A cards: of all agents together, and of the agents of a pool."""

from __future__ import annotations

import hashlib
import json

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from starlette.requests import Request
from starlette.responses import Response

from ioa.distribution import installed_version
from ioa.errors import NotFoundError
from ioa.protocol.cards import AgentCard as Card
from ioa.protocol.ids import PoolId
from ioa.protocol.registry import ListAgents
from ioa_gateway.context import ApiCall

_MEDIA_TYPES = ("text/plain", "application/json", "application/octet-stream")
_SCHEME = "key"


async def card_of_pool(pool: PoolId, url: str, call: ApiCall) -> AgentCard:
    """Return the card of a pool, with the description of an agent of the pool.

    Raises:
        NotFoundError: There is no such pool.
    """
    found = (await call.client.list_agents(ListAgents(pool=pool, limit=1))).agents
    if not found:
        raise NotFoundError(f"There is no pool {pool}.", hint="GET /v1/agents lists the agents with their pools.")
    card = found[0].card
    return _card(card.name, card.description, card.version, url, _skills(card))


def card_of_network(url: str) -> AgentCard:
    """Return the card of all agents together. It names none of them."""
    skill = AgentSkill(
        id="goal",
        name="Reach a goal",
        description="Finds the agents that fit a goal, has them work on it as a team, and answers with their conclusion.",
        tags=["team"],
    )
    return _card("Internet of Agents", "Agents that form a team for each goal.", installed_version(), url, [skill])


def card_response(card: AgentCard, url: str, request: Request) -> Response:
    """Return the response with a card, or 304 if the client has it.

    Clients that name no version get the interface of 0.3 too, whose fields the schema of 1.0 forbids.
    """
    if not request.headers.get("a2a-version"):
        card.supported_interfaces.append(AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="0.3"))
    body = json.dumps(agent_card_to_dict(card), ensure_ascii=False).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "max-age=60", "Vary": "A2A-Version, Authorization"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def _card(name: str, description: str, version: str, url: str, skills: list[AgentSkill]) -> AgentCard:
    bindings = ("JSONRPC", "HTTP+JSON")
    return AgentCard(
        name=name,
        description=description,
        version=version,
        supported_interfaces=[AgentInterface(url=url, protocol_binding=one, protocol_version="1.0") for one in bindings],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=False),
        security_schemes={_SCHEME: SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))},
        security_requirements=[SecurityRequirement(schemes={_SCHEME: StringList(list=[])})],
        default_input_modes=_MEDIA_TYPES,
        default_output_modes=_MEDIA_TYPES,
        skills=skills,
    )


def _skills(card: Card) -> list[AgentSkill]:
    """Return the skills of a card, or one skill from its description. The first skill has the examples."""
    skills = [(skill.name, skill.description or card.description) for skill in card.skills] or [(card.name, card.description)]
    return [
        AgentSkill(
            id=f"{card.pool}-{number}",
            name=name,
            description=description,
            tags=[*(card.tags or (card.pool,))],
            examples=[*card.examples] if number == 1 else [],
        )
        for number, (name, description) in enumerate(skills, 1)
    ]
