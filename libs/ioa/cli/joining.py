"""`ioa agent run` and `ioa agent adopt`: joins agents to the system in reach."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ioa.agent.definition import AgentDefinition
from ioa.cli.adopt import adopt
from ioa.cli.command import command, run_to_end
from ioa.cli.options import Replicas, Url
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError
from ioa.hosting.deployment import as_deployed, replica_of
from ioa.hosting.host import host, load_agent, serve_hosted
from ioa.hosting.place import wait_for_place

agent = typer.Typer(no_args_is_help=True, help="Run an agent.")
command(agent, "adopt")(adopt)

_SHOWN = 5


def replica_numbers(replica: int | None, replicas: int | None, deployed_as: int | None = None) -> Sequence[int | None]:
    """Return the numbers of the replicas to join; None is the agent itself.

    Args:
        replica: Join as this replica.
        replicas: Join as replicas 0 to this number - 1.
        deployed_as: The replica that the deployment names.

    Raises:
        InvalidInputError: Both `replica` and `replicas` are given.
    """
    if replica is not None and replicas is not None:
        raise InvalidInputError("--replica joins as one, --replicas as several.", hint="Give one or the other.")
    if replicas is not None:
        return range(replicas)
    return [deployed_as if replica is None else replica]


def join(
    agents: Sequence[AgentDefinition],
    replicas: Sequence[int | None],
    url: str | None,
    metrics_port: int | None,
    terminal: Terminal,
) -> None:
    """Serve each agent as these replicas until SIGTERM. They wait for a system, and continue after its outages."""
    hosted = [host(agent, replica) for agent in as_deployed(agents, os.environ) for replica in replicas]
    names = [one.agent_id for one in hosted]
    place = run_to_end(wait_for_place(url, os.environ, terminal.note))
    if terminal.as_json:
        terminal.line("joining", agents=names, url=place.url)
    # On a terminal, the agent's author reads its tasks and errors.
    is_author = sys.stderr.isatty() and not terminal.as_json
    logging = {"IOA_LOG_FORMAT": "console", "IOA_LOG_CONTENT": "true"} if is_author else {"IOA_LOG_FORMAT": "json"}
    environment = {**logging, **os.environ, "IOA_NATS_URL": place.url}
    if metrics_port is not None:
        environment["IOA_METRICS_PORT"] = str(metrics_port)
    if environment["IOA_LOG_FORMAT"] == "console":
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        terminal.note(f"joining {', '.join(names[:_SHOWN])}{more} to {place.url} ({place.source})")
    serve_hosted(hosted, environment)


@command(agent, "run")
def run(
    terminal: Terminal,
    targets: Annotated[list[str], typer.Argument(metavar="TARGET...", help="FILE.py:ATTR or MODULE:ATTR, an ioa.Agent.")],
    replica: Annotated[int | None, typer.Option(min=0, help="Join as this replica: the id gets its number.")] = None,
    replicas: Replicas = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Where to serve /metrics, /healthz and /readyz; 0: a free port.")
    ] = None,
    url: Url = None,
) -> None:
    """Join agents from Python files to the running system, and serve until SIGTERM or Ctrl-C."""
    agents = [load_agent(target) for target in targets]
    join(agents, replica_numbers(replica, replicas, replica_of(os.environ)), url, metrics_port, terminal)
