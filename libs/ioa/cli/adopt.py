"""`ioa agent adopt …`: joining agents that are a program or a server of somebody else, without a file of Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ioa.cli.command import command, run_to_end
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

if TYPE_CHECKING:
    from ioa.agent.definition import AgentDefinition

adopt = typer.Typer(no_args_is_help=True, help="Join a program or a server of somebody else as an agent.")

Id = Annotated[str, typer.Option("--id", metavar="ID", help="The agent's id.", show_default=False)]
Description = Annotated[
    str, typer.Option("--description", metavar="TEXT", help="What it does, in a sentence or two.", show_default=False)
]
ToldDescription = Annotated[
    str, typer.Option("--description", metavar="TEXT", help="What it does. Default: what it says of itself.", show_default=False)
]
Examples = Annotated[
    list[str], typer.Option("--example", metavar="TEXT", help="A request that it serves well; several decide whether it is found.")
]
Replicas = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Join as replicas 0 to N - 1, all in this process.", show_default=False)
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token-env", metavar="NAME", help="The environment variable with the token that requests bear.", show_default=False
    ),
]
ServerUrl = Annotated[str, typer.Argument(metavar="SERVER", help="The server's URL.", show_default=False)]


@command(adopt, "command")
def program(
    argv: Annotated[
        list[str], typer.Argument(metavar="PROGRAM [ARGUMENT]...", help="The program; write -- before it.", show_default=False)
    ],
    agent_id: Id,
    description: Description,
    examples: Examples = [],  # noqa: B006
    env: Annotated[
        list[str], typer.Option("--env", metavar="NAME", help="An environment variable that it is given; it gets no other.")
    ] = [],  # noqa: B006
    readable: Annotated[list[str], typer.Option("--readable", metavar="PATH", help="What else it may read in its sandbox.")] = [],  # noqa: B006
    trusted: Annotated[
        bool, typer.Option("--trusted", help="Run it without a sandbox, with your permissions and network.")
    ] = False,
    replicas: Replicas = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Join a program that speaks JSON lines: a task on stdin, progress and the result on stdout."""
    from ioa import adopt as adopting

    agent = adopting.command(
        agent_id,
        argv,
        description=description,
        examples=examples,
        env=env,
        readable=readable,
        sandbox=not trusted,
    )
    _join(agent, replicas, url, as_json=as_json)


@command(adopt)
def webhook(
    server: ServerUrl,
    agent_id: Id,
    description: Description,
    examples: Examples = [],  # noqa: B006
    token: Token = None,
    replicas: Replicas = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Join a server that takes a task by one POST."""
    from ioa import adopt as adopting

    agent = adopting.webhook(agent_id, server, description=description, examples=examples, headers=_headers(token))
    _join(agent, replicas, url, as_json=as_json)


@command(adopt)
def a2a(
    server: ServerUrl,
    agent_id: Id,
    description: ToldDescription = "",
    examples: Examples = [],  # noqa: B006
    token: Token = None,
    replicas: Replicas = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Join an agent that speaks A2A, 1.0 or 0.3, by JSON-RPC."""
    from ioa import adopt as adopting
    from ioa.adopt.remote_agents import said_of_itself

    headers = _headers(token)
    description, examples = _described(description, examples, lambda: said_of_itself(server, headers))
    agent = adopting.a2a(agent_id, server, description=description, examples=examples, headers=headers)
    _join(agent, replicas, url, as_json=as_json)


@command(adopt)
def mcp(
    target: Annotated[
        str, typer.Argument(metavar="SERVER", help="The server's URL, or its command in quotes.", show_default=False)
    ],
    agent_id: Id,
    description: ToldDescription = "",
    examples: Examples = [],  # noqa: B006
    tool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The tool that does each task. Default: a model asks for all tools.", show_default=False),
    ] = None,
    token: Token = None,
    replicas: Replicas = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Join an MCP server: by one tool that takes the task, or by a model that asks for its tools."""
    from ioa import adopt as adopting
    from ioa.adopt.mcp_tools import said_of_itself

    headers = _headers(token)
    description, examples = _described(description, examples, lambda: said_of_itself(target, tool, headers))
    agent = adopting.mcp(agent_id, target, description=description, examples=examples, tool=tool, headers=headers)
    _join(agent, replicas, url, as_json=as_json)


def _described(
    description: str, examples: list[str], ask: Callable[[], Coroutine[Any, Any, tuple[str, Sequence[str]]]]
) -> tuple[str, list[str]]:
    """Return what an agent does, and examples of it: as was said here, else as the other side says of itself."""
    if description:
        return description, examples
    description, told = run_to_end(ask())
    return description, examples or list(told)


def _headers(token: str | None) -> dict[str, str]:
    """Make the header that bears a token, which no command line should hold.

    Raises:
        InvalidInputError: The variable is not set.
    """
    from ioa.errors import InvalidInputError

    if token is None:
        return {}
    if not os.environ.get(token):
        raise InvalidInputError(f"The environment variable {token} holds no token.", hint=f"Set {token}.")
    return {"Authorization": f"Bearer {os.environ[token]}"}


def _join(agent: AgentDefinition, replicas: int | None, url: str | None, *, as_json: bool) -> None:
    from ioa.cli.joining import join, numbers
    from ioa.hosting.deployment import replica_of

    join([agent], numbers(None, replicas, replica_of(os.environ)), url, None, Terminal(as_json=as_json))
