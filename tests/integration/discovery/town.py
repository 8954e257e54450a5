"""A town of agents that come and go, and somebody who asks discovery for them over NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from nats.aio.client import Client

from ioa.adapters.nats.requests.request import NatsRequester
from ioa.protocol import subjects
from ioa.protocol.agents.search import AskIndexStatus, IndexStatus, Need, Search, SearchResult
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import LOCAL, AgentId, PoolId
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register

_PATIENCE = timedelta(seconds=10)
_TRADES = ("baker", "tailor", "potter", "glazier", "cooper", "miller", "saddler", "farrier", "weaver", "tinker")
_STREETS = ("market", "river", "castle", "bridge", "mill", "church", "garden", "harbour", "station", "forest")


def resident(number: int) -> AgentCard:
    """The card of a resident. A hundred residents have different cards, and a search finds each."""
    trade, street = _TRADES[number % 10], _STREETS[number // 10 % 10]
    name = f"{trade}-{street}"
    return AgentCard(
        agent_id=AgentId(name),
        name=f"The {trade} of {street} street",
        description=f"Works as a {trade} in {street} street.",
        examples=(f"I need a {trade} near the {street}.", f"Who does a {trade}'s work in {street} street?"),
        pool=PoolId(name),
    )


class Townsman:
    """Registers agents, keeps their leases and searches, as clients of the system do."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._requester = NatsRequester(client)

    async def register(self, *cards: AgentCard) -> None:
        """Register agents, all at once."""
        asked = (
            self._requester.request(
                subjects.agent(card.pool, card.agent_id, subjects.REGISTER), Register(card=card), Lease, timeout=_PATIENCE
            )
            for card in cards
        )
        await asyncio.gather(*asked)

    async def deregister(self, agent_id: AgentId) -> None:
        """Take an agent offline."""
        request = Deregister(agent_id=agent_id)
        await self._requester.request(
            subjects.agent(PoolId(agent_id), agent_id, subjects.DEREGISTER), request, Acknowledged, timeout=_PATIENCE
        )

    async def found(self, need: str, k: int) -> Sequence[AgentId]:
        """Who is found, best first."""
        request = Search(needs=(Need(text=need, k=k),))
        found = await self._requester.request(subjects.user(LOCAL, subjects.SEARCH), request, SearchResult, timeout=_PATIENCE)
        return [hit.card.agent_id for hit in found.merged]

    async def status(self) -> IndexStatus:
        """How the index stands of one of the replicas."""
        return await self._requester.request(
            subjects.user(LOCAL, subjects.INDEX_STATUS), AskIndexStatus(), IndexStatus, timeout=_PATIENCE
        )
