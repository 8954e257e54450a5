"""Routes of agents: list and search."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ioa.client.documents import AgentDocument, SearchDocument
from ioa.protocol.agents.search import Search
from ioa.protocol.ids import AgentId, AgentIdField
from ioa.protocol.model import Model
from ioa.protocol.registry import ListAgents
from ioa_gateway.context import AgentsCall

_PAGE = 200

router = APIRouter()


class AgentsDocument(Model):
    """A page of agents by id; `next` is the `cursor` of the next page, null on the last page."""

    agents: tuple[AgentDocument, ...]
    next: AgentId | None


@router.get("/agents")
async def list_agents(
    call: AgentsCall,
    limit: Annotated[int, Query(ge=1, le=_PAGE, description="maximum number of agents")] = _PAGE,
    cursor: Annotated[AgentIdField | None, Query(description="`next` of the previous page")] = None,
    online: Annotated[bool, Query(description="only agents with a valid lease")] = False,
) -> AgentsDocument:
    """List agents by id."""
    page = await call.client.list_agents(ListAgents(online_only=online, after=cursor, limit=limit))
    following = page.agents[-1].card.agent_id if page.more and page.agents else None
    return AgentsDocument(agents=tuple(map(AgentDocument.of, page.agents)), next=following)


@router.post("/agents/search")
async def search(call: AgentsCall, wanted: Search) -> SearchDocument:
    """Return the agents that fit each need, best first, with reasons."""
    return SearchDocument.of(await call.client.find_agents(wanted))
