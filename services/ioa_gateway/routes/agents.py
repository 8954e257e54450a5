"""Routes of agents: list and search."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from ioa.client.documents import AgentDocument, SearchDocument
from ioa.protocol.ids import AgentId, AgentIdField
from ioa.protocol.model import Instruction, Model
from ioa.protocol.registry import ListAgents
from ioa.protocol.search import Search
from ioa_gateway.calls import ApiCall, document

_PAGE = 200


class AgentsQuery(Instruction):
    """Which agents are listed, by id."""

    limit: Annotated[int, Field(ge=1, le=_PAGE, description="how many at the most")] = _PAGE
    cursor: Annotated[AgentIdField, Field(description="`next` of the page before")] | None = None
    online: Annotated[bool, Field(description="only those whose lease stands")] = False


class AgentsDocument(Model):
    """A page of agents, and the `cursor` of the one behind; null if there is none."""

    agents: tuple[AgentDocument, ...]
    next: AgentId | None


async def list_agents(call: ApiCall, query: AgentsQuery) -> Response:
    """List agents."""
    asked = ListAgents(online_only=query.online, after=query.cursor, limit=query.limit)
    async with call.page_read():
        page = await call.client.list_agents(asked)
        following = page.agents[-1].card.agent_id if page.more and page.agents else None
        return document(AgentsDocument(agents=tuple(map(AgentDocument.of, page.agents)), next=following))


async def search(call: ApiCall, asked: Search) -> Response:
    """Return the agents that fit each need, with reasons."""
    return document(SearchDocument.of(await call.client.find_agents(asked)))
