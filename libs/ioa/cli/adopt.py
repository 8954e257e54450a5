"""`ioa agent adopt`: joins a program or a server as an agent, without a Python file."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ioa.cli.command import run_to_end
from ioa.cli.options import Replicas, Url
from ioa.cli.terminal import Terminal
from ioa.errors import InvalidInputError

if TYPE_CHECKING:
    from ioa.agent.definition import AgentDefinition


class Kind(StrEnum):
    """Kinds of programs and servers that can join as agents."""

    COMMAND = "command"
    WEBHOOK = "webhook"
    A2A = "a2a"
    MCP = "mcp"


def adopt(
    terminal: Terminal,
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="command: a program that reads a task on stdin and writes progress and the result as JSON lines. "
            "webhook: a server that takes a task by POST. a2a: a server that speaks A2A. "
            "mcp: an MCP server, whose tools a model or --tool calls.",
        ),
    ],
    target: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET...",
            help="The URL of the server, or the command of an MCP server in quotes; a program and its arguments after `--`.",
        ),
    ],
    agent_id: Annotated[str, typer.Option("--id", metavar="ID", help="The agent's id.")],
    description: Annotated[
        str,
        typer.Option("--description", metavar="TEXT", help="The agent's description. Default, for a2a and mcp: the server's own."),
    ] = "",
    examples: Annotated[
        list[str], typer.Option("--example", metavar="TEXT", help="A request that it serves well; discovery searches these.")
    ] = [],  # noqa: B006
    token: Annotated[
        str | None,
        typer.Option("--token-env", metavar="NAME", help="Environment variable with the server's bearer token."),
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For mcp: the tool that does each task. Default: a model."),
    ] = None,
    env: Annotated[
        list[str], typer.Option("--env", metavar="NAME", help="For command: an environment variable to pass; no other is passed.")
    ] = [],  # noqa: B006
    readable: Annotated[
        list[str], typer.Option("--readable", metavar="PATH", help="For command: a path to make readable in the sandbox.")
    ] = [],  # noqa: B006
    trusted: Annotated[
        bool, typer.Option("--trusted", help="For command: run it without a sandbox, with your permissions and network.")
    ] = False,
    replicas: Replicas = None,
    url: Url = None,
) -> None:
    """Join a program or a server as an agent, without a Python file."""
    from ioa import adopt as adopting
    from ioa.cli.joining import join, replica_numbers
    from ioa.hosting.deployment import replica_of

    wrong = {
        "--token-env": token and kind is Kind.COMMAND,
        "--tool": tool and kind is not Kind.MCP,
        "--env, --readable and --trusted": (env or readable or trusted) and kind is not Kind.COMMAND,
    }
    if unfit := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise InvalidInputError(f"{', '.join(unfit)} cannot be used with {kind}.")
    if kind is not Kind.COMMAND and len(target) > 1:
        raise InvalidInputError(
            f"{kind} takes one target; there are {len(target)}.", hint="Write the command of a server in quotes."
        )
    if not description and kind in (Kind.COMMAND, Kind.WEBHOOK):
        raise InvalidInputError(f"{kind} has no description of its own.", hint="Describe the agent with --description.")
    server, headers = target[0], _headers(token)
    agent: AgentDefinition
    match kind:
        case Kind.COMMAND:
            agent = adopting.command(
                agent_id,
                target,
                description=description,
                examples=examples,
                env=env,
                readable=readable,
                sandbox=not trusted,
            )
        case Kind.WEBHOOK:
            agent = adopting.webhook(agent_id, server, description=description, examples=examples, headers=headers)
        case Kind.A2A:
            from ioa.adopt.remote_agents import said_of_itself as a2a_card

            description, examples = _described(description, examples, lambda: a2a_card(server, headers))
            agent = adopting.a2a(agent_id, server, description=description, examples=examples, headers=headers)
        case Kind.MCP:
            from ioa.adopt.mcp_tools import said_of_itself as mcp_card

            description, examples = _described(description, examples, lambda: mcp_card(server, tool, headers))
            agent = adopting.mcp(agent_id, server, description=description, examples=examples, tool=tool, headers=headers)
    join([agent], replica_numbers(None, replicas, replica_of(os.environ)), url, None, terminal)


def _described(
    description: str, examples: list[str], ask: Callable[[], Coroutine[Any, Any, tuple[str, Sequence[str]]]]
) -> tuple[str, list[str]]:
    """Return the description and examples of an agent: those given, otherwise those of the other side."""
    if description:
        return description, examples
    description, told = run_to_end(ask())
    return description, examples or list(told)


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
