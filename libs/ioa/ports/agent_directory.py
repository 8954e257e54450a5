"""What users ask about agents: who there is, and who fits a need."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.protocol.cards import AgentStatus
from ioa.protocol.ids import AgentId
from ioa.protocol.registry import Agents, ListAgents
from ioa.protocol.search import IndexStatus, Search, SearchResult

_PAGE = 200


@dataclass(frozen=True)
class Roster:
    """All agents, by id, and what cannot be listed, each with the reason."""

    agents: Sequence[AgentStatus]
    skipped: Sequence[str]


async def pages_of_agents(
    list_agents: Callable[[ListAgents], Awaitable[Agents]], *, online_only: bool = False
) -> AsyncGenerator[Agents, None]:
    """Yield all agents, by id, a page at a time."""
    after: AgentId | None = None
    while True:
        page = await list_agents(ListAgents(online_only=online_only, after=after, limit=_PAGE))
        yield page
        if not page.agents or not page.more:
            return
        after = page.agents[-1].card.agent_id


class AgentDirectory(Protocol):
    """The registry and discovery as users see them."""

    async def agents(self, *, online_only: bool = False) -> Sequence[AgentStatus]:
        """List all agents, by id."""

    async def roster(self, *, online_only: bool = False) -> Roster:
        """List all agents, by id, and what keeps others off the list."""

    async def list_agents(self, request: ListAgents) -> Agents:
        """Ask for one page of a list of agents."""

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery who fits."""

    async def index_status(self) -> IndexStatus:
        """Ask how discovery's index stands."""
