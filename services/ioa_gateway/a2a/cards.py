"""Who is reached by A2A, as its cards say: all agents together, or those of one pool."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

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
from ioa_gateway.calls import ApiCall

_KINDS = ("text/plain", "application/json", "application/octet-stream")
_SCHEME = "key"
_HOSTS = 64
"""Of how many URLs the card of all agents is kept. There are as many as the gateway has names."""


async def card_of_pool(pool: PoolId, url: str, call: ApiCall) -> AgentCard:
    """Write the card of a pool, off that of one of its agents.

    Raises:
        NotFoundError: There is no such pool.
    """
    found = (await call.client.list_agents(ListAgents(pool=pool, limit=1))).agents
    if not found:
        raise NotFoundError(f"There is no pool {pool}.", hint="GET /v1/agents lists the agents with their pools.")
    card = found[0].card
    return _card(card.name, card.description, card.version, url, _skills(card))


def card_of_network(url: str) -> AgentCard:
    """Write the card of all agents together. It names none of them."""
    skill = AgentSkill(
        id="goal",
        name="Reach a goal",
        description="Finds the agents that fit a goal, has them work on it as a team, and answers with their conclusion.",
        tags=["team"],
    )
    return _card("Internet of Agents", "Agents that form a team for each goal.", installed_version(), url, [skill])


@dataclass(frozen=True)
class WrittenCard:
    """A card as it is sent."""

    body: bytes
    tag: str

    def answer(self, request: Request) -> Response:
        """Answer with the card, unless it is the one that is known."""
        heads = {"ETag": self.tag, "Cache-Control": "max-age=60", "Vary": "A2A-Version, Authorization"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=heads)
        return Response(self.body, headers=heads, media_type="application/json")


@lru_cache(_HOSTS)
def written_card_of_network(url: str, *, is_old: bool) -> WrittenCard:
    """Write the card of all agents together, once: whoever asks for it shows no key, and to write one takes a ms."""
    return written(card_of_network(url), url, is_old=is_old)


def written(card: AgentCard, url: str, *, is_old: bool) -> WrittenCard:
    """Write a card. Only who names no version (`is_old`) is told of the old one too, whose fields the new one's schema forbids."""
    if is_old:
        card.supported_interfaces.append(AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="0.3"))
    body = json.dumps(agent_card_to_dict(card), ensure_ascii=False).encode()
    return WrittenCard(body, f'"{hashlib.sha256(body).hexdigest()}"')


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
        default_input_modes=_KINDS,
        default_output_modes=_KINDS,
        skills=skills,
    )


def _skills(card: Card) -> list[AgentSkill]:
    """Tell its skills, or that it has the one that its description says; what it serves well stands with the first."""
    told = [(skill.name, skill.description or card.description) for skill in card.skills] or [(card.name, card.description)]
    return [
        AgentSkill(
            id=f"{card.pool}-{number}",
            name=name,
            description=description,
            tags=[*(card.tags or (card.pool,))],
            examples=[*card.examples] if number == 1 else [],
        )
        for number, (name, description) in enumerate(told, 1)
    ]
