"""`ioa credentials …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson
from ioa.cli.terminal import Terminal

credentials = typer.Typer(no_args_is_help=True, help="Who may connect to NATS, and as what.")


@credentials.command()
def create(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where seeds and authorization go.", show_default=False)],
    pool: Annotated[
        list[str],
        typer.Option("--pool", metavar="ID[:N]", help="The agent ID; with :N the agents ID-0 to ID-(N-1).", show_default=False),
    ] = [],  # noqa: B006
    user: Annotated[list[str], typer.Option("--user", metavar="NAME", help="Launches goals and sees everything.")] = [],  # noqa: B006
    observer: Annotated[list[str], typer.Option("--observer", metavar="NAME", help="Sees that all runs, and reads nothing.")] = [],  # noqa: B006
    admin: Annotated[list[str], typer.Option("--admin", metavar="NAME", help="May do everything.")] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Make an nkey for each service, agent and user, and the part of nats-server's configuration that lets them in.

    A seed that is there is never replaced. The configuration holds who is named now: name everybody each time. Prints its path.
    """
    with reported(as_json=as_json):
        from ioa.cli.credentials import create_credentials, plan_of

        create_credentials(out, plan_of(pool, user, observer, admin), Terminal(as_json=as_json))


@credentials.command()
def upgrade(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where seeds and authorization are.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Bring the authorization that an older version wrote up to date, for whom it lets in already; seeds stay. Prints its path.

    Then restart nats-server: where accounts are new, it takes more than a reload until requests cross between them.
    """
    with reported(as_json=as_json):
        from ioa.cli.credentials import upgrade_credentials

        upgrade_credentials(out, Terminal(as_json=as_json))
