"""Listing agents and searching among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from ioa.cli.conversation import speaker_style
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.protocol.cards import AgentStatus
from ioa.protocol.codec import validate
from ioa.protocol.search import Filters, Hit, Need, NeedHits, Search


async def list_agents(url: str | None, online: bool, terminal: Terminal) -> None:
    """List the agents by id."""
    async with open_reached_system(url) as system:
        found = await system.agents(online_only=online)
    if terminal.as_json:
        terminal.document([agent_document(status) for status in found])
    elif not found:
        terminal.print("No agent is registered. Join one: ioa agent run FILE.py:agent")
    else:
        terminal.print(_agent_table(found))


async def search_agents(url: str | None, needs: Sequence[str], count: int, everybody: bool, terminal: Terminal) -> None:
    """Ask discovery for each need."""
    filters = Filters(online=not everybody)
    raw = [{"text": need, "k": count, "filters": filters.model_dump()} for need in needs]
    if any(not need.strip() for need in needs):
        raise InvalidInputError("A need is empty.", hint="Say in words what somebody is needed for.")
    search = validate(Search, {"needs": [validate(Need, one) for one in raw]})
    async with open_reached_system(url) as system:
        result = await system.search(search)
    if terminal.as_json:
        terminal.document([_need_document(need) for need in result.by_need])
        return
    for number, need in enumerate(result.by_need):
        if len(result.by_need) > 1:
            terminal.print(*([Text()] if number else []), Text(need.need.text, style="bold"))
        terminal.print(_hit_table(need.hits) if need.hits else "Nobody fits. `ioa agents` lists who is there.")


def agent_document(status: AgentStatus) -> Mapping[str, Any]:
    """Describe an agent for programs."""
    return {**status.card.model_dump(mode="json"), "online": status.online, "registered_at": status.registered_at.isoformat()}


def _need_document(found: NeedHits) -> Mapping[str, Any]:
    hits = [
        {
            "agent_id": hit.card.agent_id,
            "pool": hit.card.pool,
            "similarity": hit.similarity,
            "score": hit.score,
            "matched_example": hit.matched_example,
            "description": hit.card.description,
        }
        for hit in found.hits
    ]
    return {"need": found.need.text, "hits": hits}


def _agent_table(found: Sequence[AgentStatus]) -> Table:
    table = _table("agent", "pool", "online")
    table.add_column("what it does", overflow="fold")
    for status in found:
        online = Text("yes", style="green") if status.online else Text("no", style="red")
        card = status.card
        table.add_row(Text(card.agent_id, style=speaker_style(card.agent_id)), card.pool, online, Text(card.description))
    return table


def _hit_table(hits: Sequence[Hit]) -> Table:
    table = _table("agent", "similarity")
    table.add_column("nearest example", overflow="fold")
    for hit in hits:
        agent_id = hit.card.agent_id
        nearest = hit.matched_example or hit.card.description
        table.add_row(Text(agent_id, style=speaker_style(agent_id)), f"{hit.similarity:.2f}", Text(nearest))
    return table


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        table.add_column(head, no_wrap=True)
    return table
