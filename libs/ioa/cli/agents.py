"""Listing agents and searching among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ioa.cli.command import callback, command
from ioa.cli.conversation import speaker_style
from ioa.cli.options import AsJson, Url
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.client.documents import AgentDocument, SearchDocument, told
from ioa.errors import InvalidInputError
from ioa.protocol.cards import AgentStatus, advice
from ioa.protocol.codec import validate
from ioa.protocol.ids import parse_agent_id
from ioa.protocol.load import Load
from ioa.protocol.outcomes import Record
from ioa.protocol.registry import RemoveAgent
from ioa.protocol.search import Hit, Search, Signal

agents = typer.Typer(invoke_without_command=True, help="List the agents, or search among them.")

_ADVISED = 3
"""How many poor cards are named below the list of agents."""
_SIGNALS = {Signal.TEXT: "its own words", Signal.EXAMPLES: "examples", Signal.BM25: "shared words"}
_MEASURES = {Signal.TEXT: "cosine", Signal.EXAMPLES: "cosine", Signal.BM25: "BM25"}


@dataclass(frozen=True)
class SearchOptions:
    """A search as it is put on the command line: the needs, and what holds for all of them."""

    needs: Sequence[str]
    count: int
    filters: Mapping[str, object] = field(default_factory=dict)
    exclude: Sequence[str] = ()
    budget: int | None = None

    def search(self) -> Search:
        """Make the search.

        Raises:
            InvalidInputError: It is none; the message says what is wrong.
        """
        if any(not need.strip() for need in self.needs):
            raise InvalidInputError("A need is empty.", hint="Say in words what somebody is needed for.")
        needs = [{"text": need, "k": self.count, "filters": dict(self.filters)} for need in self.needs]
        return validate(Search, {"needs": needs, "exclude": list(self.exclude), "budget": self.budget})


@callback(agents)
async def list_agents(
    context: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Only agents that are online.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the agents with id, pool, state and description, or search them."""
    if context.invoked_subcommand is not None:
        return
    terminal = Terminal(as_json=as_json)
    async with open_reached_system(url) as system:
        found = await system.agents(online_only=online)
    if terminal.as_json:
        terminal.document([told(AgentDocument.of(status)) for status in found])
    elif not found:
        terminal.print("No agent is registered. Join one: ioa agent run FILE.py:agent")
    else:
        terminal.print(_agent_table(found), *_advice_on(found))


@command(agents, "search")
async def search_agents(
    needs: Annotated[list[str], typer.Argument(metavar="NEED...", help="A task for which an agent is needed.", show_default=False)],
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=100, help="How many agents for each need.")] = 5,
    why: Annotated[bool, typer.Option("--why", help="Show the reasons for and against each agent.")] = False,
    everybody: Annotated[bool, typer.Option("--all", help="Also agents that are offline.")] = False,
    pool: Annotated[str | None, typer.Option(metavar="ID", help="Only this pool.", show_default=False)] = None,
    tags: Annotated[
        list[str], typer.Option("--tag", metavar="TAG", help="Only agents with this tag; with several tags, with all of them.")
    ] = [],  # noqa: B006
    version: Annotated[str | None, typer.Option(metavar="V", help="Only cards of this version.", show_default=False)] = None,
    without: Annotated[list[str], typer.Option("--not", metavar="ID", help="Not this agent.")] = [],  # noqa: B006
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Also one list of N agents for all needs.", show_default=False)
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Find the agents that fit a need, best first; several needs are searched side by side."""
    filters = {"online": not everybody, "pool": pool, "tags": tags, "version": version}
    options = SearchOptions(needs, count, filters, without, budget)
    terminal = Terminal(as_json=as_json)
    search = options.search()
    async with open_reached_system(url) as system:
        result = await system.search(search)
    if terminal.as_json:
        terminal.document(told(SearchDocument.of(result)))
        return
    for number, need in enumerate(result.by_need):
        if len(result.by_need) > 1:
            terminal.print(*([Text()] if number else []), Text(need.need.text, style="bold"))
        if not need.hits:
            terminal.print("Nobody fits. `ioa agents` lists who is there.")
        elif why:
            terminal.print(*(part for place, hit in enumerate(need.hits, 1) for part in _explanation(place, hit)))
        else:
            terminal.print(_hit_table(need.hits))
    if options.budget is not None:
        terminal.print(Text(), Text(f"all needs, {len(result.merged)} agents", style="bold"), _hit_table(result.merged))


def _agent_table(found: Sequence[AgentStatus]) -> Table:
    table = _table("agent", "pool", "online", "busy")
    table.add_column("what it does", overflow="fold")
    for status in found:
        online = Text("yes", style="green") if status.online else Text("no", style="red")
        card = status.card
        busy = _busy(status.load) if status.online else ""
        table.add_row(Text(card.agent_id, style=speaker_style(card.agent_id)), card.pool, online, busy, Text(card.description))
    return table


def _advice_on(found: Sequence[AgentStatus]) -> Sequence[RenderableType]:
    """Say of the pools that are found badly what to add to their cards."""
    told = {status.card.pool: advice(status.card)[0] for status in found if advice(status.card)}
    lines = [Text.assemble((pool, "yellow"), f": {one}") for pool, one in list(told.items())[:_ADVISED]]
    more = len(told) - len(lines)
    return [Text(), *lines, *([Text(f"The cards of {more} more could say more, too.")] if more else [])] if told else []


def _hit_table(hits: Sequence[Hit]) -> Table:
    table = _table("agent", "similarity", "busy", "done")
    table.add_column("nearest example", overflow="fold")
    for hit in hits:
        agent_id = hit.card.agent_id
        nearest = hit.matched_example or hit.card.description
        name = Text(agent_id, style=speaker_style(agent_id))
        table.add_row(name, f"{hit.similarity:.2f}", _busy(hit.load), _done(hit.record), Text(nearest))
    return table


def _explanation(place: int, hit: Hit) -> Sequence[RenderableType]:
    """Say in a few lines why a hit stands where it stands."""
    facts = ["online" if hit.online else "offline", f"{_busy(hit.load)} slots taken"]
    if hit.replicas > 1:
        facts.append(f"least busy of {hit.replicas} replicas")
    facts.append(f"{_done(hit.record)} tasks done" if hit.record.tried else "never tried")
    name = (hit.card.agent_id, speaker_style(hit.card.agent_id))
    line = Text.assemble(f"{place}. ", name, f"  {hit.score:.3f}  ", (", ".join(facts), "dim"))
    parts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for _ in range(3):
        parts.add_column(no_wrap=True)
    parts.add_column(overflow="fold")
    said = {one.signal: one for one in hit.why.signals}
    for signal, words in _SIGNALS.items():
        nearest = hit.matched_example if signal is Signal.EXAMPLES else ""
        if one := said.get(signal):
            parts.add_row(words, f"{one.fused:.3f}", f"{_MEASURES[signal]} {one.raw:.2f}", Text(nearest))
        elif signal is Signal.EXAMPLES and not hit.card.examples:
            parts.add_row(words, "", "not counted", Text("its card has none", style="yellow"))
        else:
            parts.add_row(words, "0.000", "none" if signal is Signal.BM25 else "too far", "")
    parts.add_row("match", f"{hit.why.match:.3f}", "their mean", "")
    for shift in hit.why.shifts:
        parts.add_row(shift.cause, f"{shift.amount:+.3f}", "", Text(shift.reason))
    return line, Padding(parts, (0, 0, 0, 3))


def _busy(load: Load) -> str:
    return f"{load.tasks} of {load.slots}"


def _done(record: Record) -> str:
    return f"{record.done} of {record.done + record.failed}" if record.tried else ""


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in heads:
        table.add_column(head, no_wrap=True)
    return table


@command(agents, "remove")
async def remove_agent(
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent's id, as `ioa agents` lists it.", show_default=False)],
    force: Annotated[
        bool, typer.Option("--force", help="Also an agent that is online; it registers again if its process continues.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Remove the card of an agent, and the queue of its pool if the pool has no other agent and no waiting goal.

    On a system that asks who you are only an admin may do this.
    """
    terminal = Terminal(as_json=as_json)
    request = RemoveAgent(agent_id=parse_agent_id(agent_id), force=force)
    async with open_reached_system(url) as system:
        await system.remove_agent(request)
    if terminal.as_json:
        terminal.document({"removed": request.agent_id})
    else:
        terminal.print(f"{request.agent_id} is forgotten")
