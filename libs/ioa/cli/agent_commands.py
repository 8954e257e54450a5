"""`ioa agents` and `ioa agent …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ioa.cli.adopt_commands import adopt
from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

agent = typer.Typer(no_args_is_help=True, help="Run an agent.")
agent.add_typer(adopt, name="adopt")
agents = typer.Typer(invoke_without_command=True, help="List the agents, or search among them.")


@agents.callback()
def list_all(
    context: typer.Context,
    online: Annotated[bool, typer.Option("--online", help="Only those that are online.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the agents: id, pool, whether online, and what each does; or search among them."""
    if context.invoked_subcommand is not None:
        return
    with reported(as_json=as_json):
        from ioa.cli.agents import list_agents
        from ioa.cli.foreground import run_to_end

        run_to_end(list_agents(url, online, Terminal(as_json=as_json)))


@agents.command()
def search(
    needs: Annotated[list[str], typer.Argument(metavar="NEED...", help="What somebody is needed for.", show_default=False)],
    count: Annotated[int, typer.Option("--count", "-k", min=1, max=100, help="How many agents for each need.")] = 5,
    why: Annotated[bool, typer.Option("--why", help="Say of each agent what speaks for it and against it.")] = False,
    everybody: Annotated[bool, typer.Option("--all", help="Also those that are offline.")] = False,
    pool: Annotated[str | None, typer.Option(metavar="ID", help="Only this pool.", show_default=False)] = None,
    tags: Annotated[list[str], typer.Option("--tag", metavar="TAG", help="Only those with this tag; all of several.")] = [],  # noqa: B006
    version: Annotated[str | None, typer.Option(metavar="V", help="Only cards of this version.", show_default=False)] = None,
    without: Annotated[list[str], typer.Option("--not", metavar="ID", help="Not this agent.")] = [],  # noqa: B006
    budget: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Also one list of N agents for all needs.", show_default=False)
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Find the agents that fit a need, best first; several needs are searched side by side."""
    with reported(as_json=as_json):
        from ioa.cli.agents import SearchOptions, search_agents
        from ioa.cli.foreground import run_to_end

        filters = {"online": not everybody, "pool": pool, "tags": tags, "version": version}
        options = SearchOptions(needs, count, filters, without, budget)
        run_to_end(search_agents(url, options, why, Terminal(as_json=as_json)))


@agents.command()
def remove(
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent's id, as `ioa agents` lists it.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Also one that is online; it comes back if its process goes on.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Forget an agent that is not coming back: its card, and its pool's queue if nobody else is of the pool and nothing waits.

    On a system that asks who you are only an admin may do this.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.pruning import remove_agent

        run_to_end(remove_agent(url, agent_id, Terminal(as_json=as_json), force=force))


@agent.command()
def run(
    targets: Annotated[
        list[str], typer.Argument(metavar="TARGET...", help="FILE.py:ATTR or MODULE:ATTR, an ioa.Agent.", show_default=False)
    ],
    replica: Annotated[
        int | None, typer.Option(min=0, help="Join as this replica: the id gets its number.", show_default=False)
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Join as replicas 0 to N - 1, all in this process.", show_default=False)
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Where to serve /metrics, /healthz and /readyz; 0: a free port.", show_default=False),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Join agents from Python files to the running system, and serve until SIGTERM or Ctrl-C."""
    with reported(as_json=as_json):
        from ioa.cli.joining import join, numbers
        from ioa.hosting.deployment import replica_of
        from ioa.hosting.host import load_agent

        agents = [load_agent(target) for target in targets]
        join(agents, numbers(replica, replicas, replica_of(os.environ)), url, metrics_port, Terminal(as_json=as_json))
