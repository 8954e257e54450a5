"""`ioa credentials …`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson
from ioa.cli.terminal import Terminal

credentials = typer.Typer(no_args_is_help=True, help="Manage the names that may connect to NATS, and their keys.")

Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the credentials.", show_default=False)]
PidFile = Annotated[
    Path | None,
    typer.Option("--pid-file", metavar="FILE", help="nats-server's `pid_file`, to signal it to reload.", show_default=False),
]
Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A service, a pool, an agent or a user. Default: the whole tenant.", show_default=False),
]
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="The tenant.", show_default=False)]


@credentials.command()
def create(
    out: Folder,
    pool: Annotated[
        list[str],
        typer.Option("--pool", metavar="ID[:N]", help="The agent ID; with :N the agents ID-0 to ID-(N-1).", show_default=False),
    ] = [],  # noqa: B006
    user: Annotated[list[str], typer.Option("--user", metavar="NAME", help="Launches goals and reads all goals.")] = [],  # noqa: B006
    gateway: Annotated[list[str], typer.Option("--gateway", metavar="NAME", help="Serves HTTP for all users.")] = [],  # noqa: B006
    seat: Annotated[list[str], typer.Option("--seat", metavar="NAME", help="Answers as this person in teams.")] = [],  # noqa: B006
    observer: Annotated[list[str], typer.Option("--observer", metavar="NAME", help="Reads states, and no content.")] = [],  # noqa: B006
    auditor: Annotated[list[str], typer.Option("--auditor", metavar="NAME", help="Reads the audit log only.")] = [],  # noqa: B006
    admin: Annotated[list[str], typer.Option("--admin", metavar="NAME", help="May do everything.")] = [],  # noqa: B006
    callout: Annotated[bool, typer.Option("--callout", help="Accept third parties by tokens (auth callout).")] = False,
    tenant: Tenant = None,
    limit: Annotated[
        list[str],
        typer.Option("--limit", metavar="NAME=N", help="Limit of the tenant, such as agent_connections=300.", show_default=False),
    ] = [],  # noqa: B006
    pid_file: PidFile = None,
    as_json: AsJson = False,
) -> None:
    """Add names to the roster, with a seed for each, and print the file that nats-server includes.

    Names and seeds that exist stay. The services are always added. After the first --callout, and after a new tenant, restart
    nats-server: a reload is not enough.
    """
    with reported(as_json=as_json):
        from ioa.cli import credentials as edits
        from ioa.hosting.roster import AccessRole
        from ioa.protocol.team import seat_of

        names = {
            AccessRole.USER: user,
            AccessRole.GATEWAY: gateway,
            AccessRole.OBSERVER: observer,
            AccessRole.AUDITOR: auditor,
            AccessRole.ADMIN: admin,
        }
        pools = [*pool, *map(seat_of, seat)]
        wanted = edits.want(pools, names, tenant=edits.parse_tenant(tenant), limits=limit, callout=callout)
        edits.create(edits.CredentialFolder(out, pid_file), wanted, datetime.now(UTC), Terminal(as_json=as_json))


@credentials.command("list")
def list_names(out: Folder, as_json: AsJson = False) -> None:
    """List the names of the roster, with role, pool, tenant and keys."""
    with reported(as_json=as_json):
        from ioa.cli import credentials as edits

        edits.list_holders(edits.CredentialFolder(out), datetime.now(UTC), Terminal(as_json=as_json))


@credentials.command()
def rotate(
    out: Folder,
    name: Name = None,
    tenant: Tenant = None,
    grace: Annotated[str, typer.Option(metavar="AGE", help="When the old keys expire: 1h, 30m, 0s.")] = "1h",
    pid_file: PidFile = None,
    as_json: AsJson = False,
) -> None:
    """Replace seeds while the system runs. Running processes continue, and use the new seed when they reconnect.

    The old keys connect until the grace period has ended and `ioa credentials render` has run. With `--grace 0s` they end at once.
    """
    with reported(as_json=as_json):
        from ioa.cli import credentials as edits
        from ioa.cli.pruning import parse_age

        keys = edits.CredentialFolder(out, pid_file)
        edits.rotate(keys, edits.parse_tenant(tenant), name, parse_age(grace), datetime.now(UTC), Terminal(as_json=as_json))


@credentials.command()
def render(out: Folder, pid_file: PidFile = None, as_json: AsJson = False) -> None:
    """Render the file of nats-server again, without keys that have expired. For a timer, or after a new version."""
    with reported(as_json=as_json):
        from ioa.cli import credentials as edits

        edits.render(edits.CredentialFolder(out, pid_file), datetime.now(UTC), Terminal(as_json=as_json))


@credentials.command()
def revoke(
    out: Folder,
    name: Name = None,
    tenant: Tenant = None,
    subject: Annotated[bool, typer.Option("--subject", help="NAME is the subject (`sub`) of tokens; see --callout.")] = False,
    pid_file: PidFile = None,
    as_json: AsJson = False,
) -> None:
    """Remove a name from the roster, and its seed. nats-server closes its connections when it reloads.

    Prints the commands that cancel the goals of a user, revoke its HTTP keys, and remove an agent's card.
    """
    with reported(as_json=as_json):
        from ioa.cli import credentials as edits

        keys, terminal = edits.CredentialFolder(out, pid_file), Terminal(as_json=as_json)
        if subject:
            edits.revoke_subject(keys, name or "", terminal)
        else:
            edits.revoke(keys, edits.parse_tenant(tenant), name, datetime.now(UTC), terminal)
