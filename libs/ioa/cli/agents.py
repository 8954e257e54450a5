"""`ioa agents` and `ioa agent`: lists, searches, removes, runs and adopts agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from ioa.agent.definition import AgentDefinition
from ioa.cli.command import Replicas, command, run_to_end
from ioa.cli.output.console import create_table, speaker_style
from ioa.cli.output.terminal import Terminal
from ioa.client.client import Client
from ioa.client.documents import AgentDocument, SearchDocument, told
from ioa.errors import InvalidInputError
from ioa.hosting.host import host, serve_hosted
from ioa.hosting.loading import as_deployed, load_agent, replica_of
from ioa.hosting.place import wait_for_place
from ioa.protocol.agents.outcomes import Record
from ioa.protocol.agents.search import Hit, Search
from ioa.protocol.cards import Load
from ioa.protocol.codec import validate
from ioa.protocol.ids import parse_agent_id
from ioa.protocol.registry import RemoveAgent

agents = typer.Typer(invoke_without_command=True, help="List the agents, or search among them.")
agent = typer.Typer(no_args_is_help=True, help="Run an agent.")

_NAMED = 5
"""Maximum number of agents that the note about joining names."""


@command(agents, is_family=True)
async def list_agents(system: Client, terminal: Terminal, *, online: bool = False) -> None:
    """List the agents with id, pool, state and description, or search them.

    Args:
        online: Only agents that are online.
    """
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
    shown = table if found else "No agent is registered. Join one: ioa agent run FILE.py:agent"
    terminal.show([told(AgentDocument.of(status)) for status in found], shown)


@command(agents, "search")
async def search_agents(
    system: Client,
    terminal: Terminal,
    needs: Sequence[str],
    *,
    count: Annotated[int, typer.Option(min=1, max=100)] = 5,
    why: bool = False,
    include_offline: bool = False,
    budget: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Find the agents that fit a need, best first; several needs are searched side by side.

    Args:
        needs (NEED...): A task for which an agent is needed.
        count (--count -k): How many agents for each need.
        why: Show the reasons for and against each agent.
        include_offline (--all): Also agents that are offline.
        budget (N): Also one list of N agents for all needs.
    """
    asked = [{"text": need, "k": count, "filters": {"online": not include_offline}} for need in needs]
    result = await system.find_agents(validate(Search, {"needs": asked, "budget": budget}))
    shown: list[RenderableType] = []
    for need in result.by_need:
        if len(result.by_need) > 1:
            shown += [*([Text()] if shown else []), Text(need.need.text, style="bold")]
        shown.append(_hit_table(need.hits, why=why) if need.hits else "No agent fits. `ioa agents` lists all agents.")
    if budget is not None:
        shown += [Text(), Text(f"all needs, {len(result.merged)} agents", style="bold"), _hit_table(result.merged)]
    terminal.show(told(SearchDocument.of(result)), *shown)


@command(agents, "remove")
async def remove_agent(system: Client, terminal: Terminal, agent_id: str, *, force: bool = False) -> None:
    """Remove the card of an agent, and the queue of its pool if the pool has no other agent and no waiting goal.

    On a system with keys this needs an admin.

    Args:
        agent_id (ID): The agent's id, as `ioa agents` lists it.
        force: Also an agent that is online; it registers again if its process continues.
    """
    await system.remove_agent(RemoveAgent(agent_id=parse_agent_id(agent_id), force=force))
    terminal.show({"removed": agent_id}, f"{agent_id} is removed")


def _hit_table(hits: Sequence[Hit], *, why: bool = False) -> RenderableType:
    """Return a table of hits, with `why` also of the signals and shifts of each score."""
    heads = ("agent", "similarity", "busy", "done", "nearest example", *["why"] * why)
    rows: list[Sequence[str | Text]] = [
        (
            _name(hit.card.agent_id),
            f"{hit.similarity:.2f}",
            _busy(hit.load),
            _done(hit.record),
            hit.matched_example or hit.card.description,
            *[_reasons(hit)] * why,
        )
        for hit in hits
    ]
    return create_table(heads, rows, folded=("nearest example", "why"))


def _reasons(hit: Hit) -> str:
    signals = [f"{one.signal} {one.fused:.3f} (raw {one.raw:.2f})" for one in hit.why.signals]
    shifts = [f"{one.cause} {one.amount:+.3f}: {one.reason}" for one in hit.why.shifts]
    return "\n".join([f"score {hit.score:.3f}, match {hit.why.match:.3f}", *signals, *shifts])


def _name(agent_id: str) -> Text:
    return Text(agent_id, style=speaker_style(agent_id))


def _busy(load: Load) -> str:
    return f"{load.tasks} of {load.slots}"


def _done(record: Record) -> str:
    return f"{record.done} of {record.done + record.failed}" if record.tried else ""


@command(agent, "run")
def run(
    terminal: Terminal,
    targets: Sequence[str],
    *,
    replica: Annotated[int | None, typer.Option(min=0)] = None,
    replicas: Replicas = None,
    url: str | None = None,
) -> None:
    """Join agents from Python files to the running system, and serve until SIGTERM or Ctrl-C.

    Args:
        targets (TARGET...): FILE.py:ATTR or MODULE:ATTR, an ioa.Agent.
        replica: Join as this replica: the id gets its number.
    """
    if replica is not None and replicas is not None:
        raise InvalidInputError("--replica joins as one, --replicas as several.", hint="Give one or the other.")
    _join([load_agent(target) for target in targets], terminal, url, replicas, replica)


def _join(
    definitions: Sequence[AgentDefinition],
    terminal: Terminal,
    url: str | None,
    replicas: int | None,
    replica: int | None = None,
) -> None:
    """Serve each agent as these replicas until SIGTERM. They wait for a system, and continue after its outages."""
    numbers = [replica_of(os.environ) if replica is None else replica] if replicas is None else range(replicas)
    hosted = [host(one, number) for one in as_deployed(definitions, os.environ) for number in numbers]
    names = [one.agent_id for one in hosted]
    place = run_to_end(wait_for_place(url, os.environ, terminal.note))
    if terminal.as_json:
        terminal.line("joining", agents=names, url=place.url)
    # On a terminal, the agent's author reads its tasks and errors.
    is_author = sys.stderr.isatty() and not terminal.as_json
    logging = {"IOA_LOG_FORMAT": "console", "IOA_LOG_CONTENT": "true"} if is_author else {"IOA_LOG_FORMAT": "json"}
    environment = {**logging, **os.environ, "IOA_NATS_URL": place.url}
    if environment["IOA_LOG_FORMAT"] == "console":
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        terminal.note(f"joining {', '.join(names[:_NAMED])}{more} to {place.url} ({place.source})")
    serve_hosted(hosted, environment)


class Kind(StrEnum):
    """Kinds of programs and servers that can join as agents."""

    COMMAND = "command"
    WEBHOOK = "webhook"
    A2A = "a2a"
    MCP = "mcp"


@command(agent, "adopt")
def adopt(
    terminal: Terminal,
    kind: Kind,
    target: Sequence[str],
    *,
    agent_id: str,
    description: str = "",
    examples: Sequence[str] = (),
    token: str | None = None,
    tool: str | None = None,
    env: Sequence[str] = (),
    trusted: bool = False,
    replicas: Replicas = None,
    url: str | None = None,
) -> None:
    """Join a program or a server as an agent, without a Python file.

    Args:
        kind (KIND): command: a program that reads a task on stdin and writes progress and the result as JSON lines.
            webhook: a server that takes a task by POST. a2a: a server that speaks A2A.
            mcp: an MCP server, whose tools a model or --tool calls.
        target (TARGET...): The URL of the server, or the command of an MCP server in quotes; a program and its arguments
            after `--`.
        agent_id (--id ID): The agent's id.
        description (TEXT): The agent's description. Default, for a2a and mcp: the server's own.
        examples (--example TEXT): A request that it serves well; discovery searches these.
        token (--token-env NAME): Environment variable with the server's bearer token.
        tool (NAME): For mcp: the tool that does each task. Default: a model.
        env (NAME): For command: an environment variable to pass; no other is passed.
        trusted: For command: run it without a sandbox, with your permissions and network.
    """
    from ioa import adopt as adopting

    is_command, given = kind is Kind.COMMAND, bool(env or trusted)
    wrong = {"--token-env": token and is_command, "--tool": tool and kind is not Kind.MCP}
    wrong["--env and --trusted"] = given and not is_command
    if unfit := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise InvalidInputError(f"{', '.join(unfit)} cannot be used with {kind}.")
    server, *more = target
    if more and not is_command:
        hint = "Write the command of a server in quotes."
        raise InvalidInputError(f"{kind} takes one target; there are {len(target)}.", hint=hint)
    if not description and kind in (Kind.COMMAND, Kind.WEBHOOK):
        raise InvalidInputError(f"{kind} has no description of its own.", hint="Describe the agent with --description.")
    headers = _headers(token)
    card: Mapping[str, Any] = {"description": description, "examples": examples}
    if not description:
        from ioa.adopt.mcp_tools import said_of_itself as mcp_card
        from ioa.adopt.remote_agents import said_of_itself as a2a_card

        described = run_to_end(a2a_card(server, headers) if kind is Kind.A2A else mcp_card(server, tool, headers))
        card = {"description": described[0], "examples": examples or described[1]}
    adopted: AgentDefinition
    match kind:
        case Kind.COMMAND:
            adopted = adopting.command(agent_id, target, **card, env=env, sandbox=not trusted)
        case Kind.WEBHOOK:
            adopted = adopting.webhook(agent_id, server, **card, headers=headers)
        case Kind.A2A:
            adopted = adopting.a2a(agent_id, server, **card, headers=headers)
        case Kind.MCP:
            adopted = adopting.mcp(agent_id, server, **card, tool=tool, headers=headers)
    _join([adopted], terminal, url, replicas)


def _headers(token: str | None) -> dict[str, str]:
    """Make the header with a token, which no command line should contain.

    Raises:
        InvalidInputError: The variable is not set.
    """
    if token is None:
        return {}
    if not os.environ.get(token):
        raise InvalidInputError(f"The environment variable {token} holds no token.", hint=f"Set {token}.")
    return {"Authorization": f"Bearer {os.environ[token]}"}
