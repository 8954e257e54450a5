"""`ioa agents`: lists agents, searches among them, and removes cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ioa.cli.command import callback, command
from ioa.cli.console import create_table, speaker_style
from ioa.cli.terminal import Terminal
from ioa.client.client import Client
from ioa.client.documents import AgentDocument, SearchDocument, told
from ioa.protocol.cards import AgentStatus, advice
from ioa.protocol.codec import validate
from ioa.protocol.ids import parse_agent_id
from ioa.protocol.load import Load
from ioa.protocol.outcomes import Record
from ioa.protocol.registry import RemoveAgent
from ioa.protocol.search import Hit, Search, Signal

agents = typer.Typer(invoke_without_command=True, help="List the agents, or search among them.")

_ADVISED = 3
"""Maximum number of cards that the list of agents gives advice about."""
_SIGNALS = {
    Signal.TEXT: ("its own words", "cosine"),
    Signal.EXAMPLES: ("examples", "cosine"),
    Signal.BM25: ("shared words", "BM25"),
}


@callback(agents)
async def list_agents(
    system: Client,
    terminal: Terminal,
    online: Annotated[bool, typer.Option("--online", help="Only agents that are online.")] = False,
) -> None:
    """List the agents with id, pool, state and description, or search them."""
    found = await system.agents(online_only=online)
    rows = [
        (
            _name(one.card.agent_id),
            one.card.pool,
            Text("yes", style="green") if one.online else Text("no", style="red"),
            _busy(one.load) if one.online else "",
            one.card.description,
        )
        for one in found
    ]
    table = create_table(("agent", "pool", "online", "busy", "what it does"), rows, folded=("what it does",))
    shown = [table, *_advice_on(found)] if found else ["No agent is registered. Join one: ioa agent run FILE.py:agent"]
    terminal.show([told(AgentDocument.of(status)) for status in found], *shown)


@command(agents, "search")
async def search_agents(
    system: Client,
    terminal: Terminal,
    needs: Annotated[list[str], typer.Argument(metavar="NEED...", help="A task for which an agent is needed.")],
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=100, help="How many agents for each need.")] = 5,
    why: Annotated[bool, typer.Option("--why", help="Show the reasons for and against each agent.")] = False,
    everybody: Annotated[bool, typer.Option("--all", help="Also agents that are offline.")] = False,
    pool: Annotated[str | None, typer.Option(metavar="ID", help="Only this pool.")] = None,
    tags: Annotated[
        list[str], typer.Option("--tag", metavar="TAG", help="Only agents with this tag; with several tags, with all of them.")
    ] = [],  # noqa: B006
    version: Annotated[str | None, typer.Option(metavar="V", help="Only cards of this version.")] = None,
    without: Annotated[list[str], typer.Option("--not", metavar="ID", help="Not this agent.")] = [],  # noqa: B006
    budget: Annotated[int | None, typer.Option(min=1, metavar="N", help="Also one list of N agents for all needs.")] = None,
) -> None:
    """Find the agents that fit a need, best first; several needs are searched side by side."""
    filters = {"online": not everybody, "pool": pool, "tags": tags, "version": version}
    asked = [{"text": need, "k": count, "filters": filters} for need in needs]
    result = await system.find_agents(validate(Search, {"needs": asked, "exclude": without, "budget": budget}))
    shown: list[RenderableType] = []
    for need in result.by_need:
        if len(result.by_need) > 1:
            shown += [*([Text()] if shown else []), Text(need.need.text, style="bold")]
        if not need.hits:
            shown.append("No agent fits. `ioa agents` lists all agents.")
        elif why:
            shown += [part for place, hit in enumerate(need.hits, 1) for part in _explanation(place, hit)]
        else:
            shown.append(_hit_table(need.hits))
    if budget is not None:
        shown += [Text(), Text(f"all needs, {len(result.merged)} agents", style="bold"), _hit_table(result.merged)]
    terminal.show(told(SearchDocument.of(result)), *shown)


@command(agents, "remove")
async def remove_agent(
    system: Client,
    terminal: Terminal,
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent's id, as `ioa agents` lists it.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also an agent that is online; it registers again if its process continues.")
    ] = False,
) -> None:
    """Remove the card of an agent, and the queue of its pool if the pool has no other agent and no waiting goal.

    On a system with keys this needs an admin.
    """
    await system.remove_agent(RemoveAgent(agent_id=parse_agent_id(agent_id), force=force))
    terminal.show({"removed": agent_id}, f"{agent_id} is removed")


def _advice_on(found: Sequence[AgentStatus]) -> Sequence[RenderableType]:
    """Return what to add to the cards of pools that searches find badly."""
    poor = {one.card.pool: advised[0] for one in found if (advised := advice(one.card))}
    lines = [Text.assemble((pool, "yellow"), f": {one}") for pool, one in [*poor.items()][:_ADVISED]]
    if len(poor) > _ADVISED:
        lines.append(Text(f"The cards of {len(poor) - _ADVISED} more could contain more, too."))
    return [Text(), *lines] if lines else []


def _hit_table(hits: Sequence[Hit]) -> RenderableType:
    rows = [
        (
            _name(hit.card.agent_id),
            f"{hit.similarity:.2f}",
            _busy(hit.load),
            _done(hit.record),
            hit.matched_example or hit.card.description,
        )
        for hit in hits
    ]
    return create_table(("agent", "similarity", "busy", "done", "nearest example"), rows, folded=("nearest example",))


def _explanation(place: int, hit: Hit) -> Sequence[RenderableType]:
    """Explain the place of a hit in a few lines."""
    facts = ["online" if hit.online else "offline", f"{_busy(hit.load)} slots taken"]
    if hit.replicas > 1:
        facts.append(f"least busy of {hit.replicas} replicas")
    facts.append(f"{_done(hit.record)} tasks done" if hit.record.tried else "never tried")
    head = Text.assemble(f"{place}. ", _name(hit.card.agent_id), f"  {hit.score:.3f}  ", (", ".join(facts), "dim"))
    signals = {one.signal: one for one in hit.why.signals}
    rows: list[Sequence[str | Text]] = []
    for signal, (name, measure) in _SIGNALS.items():
        if one := signals.get(signal):
            nearest = hit.matched_example or "" if signal is Signal.EXAMPLES else ""
            rows.append((name, f"{one.fused:.3f}", f"{measure} {one.raw:.2f}", nearest))
        elif signal is Signal.EXAMPLES and not hit.card.examples:
            rows.append((name, "", "not counted", Text("its card has none", style="yellow")))
        else:
            rows.append((name, "0.000", "none" if signal is Signal.BM25 else "too far", ""))
    rows.append(("match", f"{hit.why.match:.3f}", "their mean", ""))
    rows += [(shift.cause, f"{shift.amount:+.3f}", "", shift.reason) for shift in hit.why.shifts]
    return head, Padding(create_table((), rows), (0, 0, 0, 3))


def _name(agent_id: str) -> Text:
    return Text(agent_id, style=speaker_style(agent_id))


def _busy(load: Load) -> str:
    return f"{load.tasks} of {load.slots}"


def _done(record: Record) -> str:
    return f"{record.done} of {record.done + record.failed}" if record.tried else ""
