"""Searches for agents from a task."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.under_way import UnderWay
from ioa.ports.agent_network import AgentNetwork
from ioa.protocol.codec import validate
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Need, Search, SearchResult
from ioa.protocol.trace import AGENT_ID
from ioa.telemetry import live_spans

Searching = UnderWay[SearchResult]
"""A search that waits for its result."""
SEARCH = "ctx.search(…)"


async def found_by(network: AgentNetwork, search: Search) -> SearchResult:
    """Search for agents."""
    with live_spans.span("search", {AGENT_ID: search.by or "", "ioa.needs": len(search.needs)}):
        return await network.search(search)


def search_for_others(needs: Sequence[str | Need], *, me: AgentId, purpose: str, budget: int | None) -> Search:
    """Return a search for needs; needs in words exclude the agent `me`.

    Raises:
        InvalidInputError: A need is not valid.
    """
    spelled = [{"text": need, "filters": {"not_self": True}} if isinstance(need, str) else need for need in needs]
    return validate(Search, {"needs": spelled, "by": me, "purpose": purpose, "budget": budget})
