"""`ioa agent run` and `ioa agent adopt`: joining agents to the system in reach."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ioa.agent.definition import AgentDefinition
from ioa.cli.adopt import adopt
from ioa.cli.command import command, run_to_end
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.hosting.deployment import as_deployed, replica_of
from ioa.hosting.host import host, load_agent, serve_hosted
from ioa.hosting.place import wait_for_place

agent = typer.Typer(no_args_is_help=True, help="Run an agent.")
command(agent, "adopt")(adopt)

_SHOWN = 5


def numbers(replica: int | None, replicas: int | None, deployed_as: int | None = None) -> Sequence[int | None]:
    """Say as which replicas to join: as one, as the first so many, or as none but the agent itself.

    Args:
        replica: The one that was asked for.
        replicas: How many were asked for.
        deployed_as: Which one the deployment says this is, if none was asked for.

    Raises:
        InvalidInputError: Both are given.
    """
    if replica is not None and replicas is not None:
        raise InvalidInputError("--replica joins as one, --replicas as several.", hint="Give one or the other.")
    if replicas is not None:
        return range(replicas)
    return [deployed_as if replica is None else replica]


def join(
    wanted: Sequence[AgentDefinition],
    replicas: Sequence[int | None],
    url: str | None,
    metrics_port: int | None,
    terminal: Terminal,
) -> None:
    """Serve each agent as these replicas until SIGTERM. They wait for a system, and continue after its outages."""
    agents = as_deployed(wanted, os.environ)
    hosted = [host(agent, replica) for agent in agents for replica in replicas]
    names = [one.agent_id for one in hosted]
    place = run_to_end(wait_for_place(url, os.environ, terminal.note))
    if terminal.as_json:
        terminal.line("joining", agents=names, url=place.url)
    # On a terminal, the agent's author reads its tasks and errors.
    looked_at = sys.stderr.isatty() and not terminal.as_json
    logging = {"IOA_LOG_FORMAT": "console", "IOA_LOG_CONTENT": "true"} if looked_at else {"IOA_LOG_FORMAT": "json"}
    environment = {**logging, **os.environ, "IOA_NATS_URL": place.url}
    if metrics_port is not None:
        environment["IOA_METRICS_PORT"] = str(metrics_port)
    if environment["IOA_LOG_FORMAT"] == "console":
        terminal.note(f"joining {listed(names)} to {place.url} ({place.source})")
    serve_hosted(hosted, environment)


def listed(names: Sequence[str]) -> str:
    """Name a few, and say how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


@command(agent, "run")
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
    agents = [load_agent(target) for target in targets]
    join(agents, numbers(replica, replicas, replica_of(os.environ)), url, metrics_port, Terminal(as_json=as_json))
