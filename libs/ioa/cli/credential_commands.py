"""`ioa credentials …`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

credentials = typer.Typer(no_args_is_help=True, help="Who may connect to NATS, and as what.")


Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where seeds and authorization are.", show_default=False)]
PidFile = Annotated[
    Path | None,
    typer.Option("--pid-file", metavar="FILE", help="nats-server's `pid_file`, to have it reload at once.", show_default=False),
]
Holder = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A service, a pool, an agent or a user; without, the whole tenant.", show_default=False),
]
OfTenant = Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="Whose keys they are.", show_default=False)]


@credentials.command()
def create(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where seeds and authorization go.", show_default=False)],
    pool: Annotated[
        list[str],
        typer.Option("--pool", metavar="ID[:N]", help="The agent ID; with :N the agents ID-0 to ID-(N-1).", show_default=False),
    ] = [],  # noqa: B006
    user: Annotated[list[str], typer.Option("--user", metavar="NAME", help="Launches goals and sees everything.")] = [],  # noqa: B006
    gateway: Annotated[list[str], typer.Option("--gateway", metavar="NAME", help="Lets others in by HTTP, for any user.")] = [],  # noqa: B006
    seat: Annotated[list[str], typer.Option("--seat", metavar="NAME", help="Answers as this person in teams.")] = [],  # noqa: B006
    observer: Annotated[list[str], typer.Option("--observer", metavar="NAME", help="Sees that all runs, and reads nothing.")] = [],  # noqa: B006
    auditor: Annotated[list[str], typer.Option("--auditor", metavar="NAME", help="Reads the audit log, and nothing else.")] = [],  # noqa: B006
    admin: Annotated[list[str], typer.Option("--admin", metavar="NAME", help="May do everything.")] = [],  # noqa: B006
    callout: Annotated[bool, typer.Option("--callout", help="Let in third parties by tokens (auth callout).")] = False,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Whose they are: a system of its own.", show_default=False)
    ] = None,
    limit: Annotated[
        list[str],
        typer.Option(
            "--limit",
            metavar="NAME=N",
            help="What the tenant, or the one without a name, may use up, such as agent_connections=300.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Make an nkey for each service, agent and user, and the part of nats-server's configuration that lets them in.

    A seed that is there is never replaced. The configuration holds who is named now: name everybody each time, of one tenant;
    others stay as they are. Who was let in before and is not named is let in no more, and told. Prints its path.
    With or without --callout where it was not before, and with a new tenant, restart nats-server: a reload is not enough.
    """
    with reported(as_json=as_json):
        from ioa.cli.credentials import create_credentials, parse_tenant, plan_of
        from ioa.protocol.team import seat_of

        whose = parse_tenant(tenant)
        pool = [*pool, *map(seat_of, seat)]
        plan = plan_of(pool, user, observer, admin, auditor, callout=callout, tenant=whose, limits=limit, gateways=gateway)
        create_credentials(out, plan, Terminal(as_json=as_json), now=datetime.now(UTC))


@credentials.command("list")
def list_keys(out: Folder, as_json: AsJson = False) -> None:
    """Say who is let in, as what, and whose seed lets in no more: whom `ioa credentials create` is to be told of again."""
    with reported(as_json=as_json):
        from ioa.cli.key_listing import list_holders

        list_holders(out, Terminal(as_json=as_json))


@credentials.command()
def rotate(
    out: Folder,
    name: Holder = None,
    tenant: OfTenant = None,
    grace: Annotated[str, typer.Option(metavar="AGE", help="How long the old keys are let in too: 1h, 30m, 0s.")] = "1h",
    pid_file: PidFile = None,
    as_json: AsJson = False,
) -> None:
    """Replace keys while the system runs. Who runs goes on, and shows the new key when it connects again; nothing is restarted.

    The old ones, those of earlier rotations too, are let in until the grace ends and `ioa credentials expire` has run; with
    `--grace 0s` at once no more.
    """
    with reported(as_json=as_json):
        from ioa.cli.credentials import parse_tenant
        from ioa.cli.key_rotation import KeyFolder
        from ioa.cli.key_rotation import rotate as rotate_keys
        from ioa.cli.pruning import parse_age

        keys = KeyFolder(out, pid_file, parse_tenant(tenant))
        rotate_keys(keys, name, parse_age(grace), datetime.now(UTC), Terminal(as_json=as_json))


@credentials.command()
def expire(out: Folder, pid_file: PidFile = None, as_json: AsJson = False) -> None:
    """Let in no more the old keys whose grace is over, and say when that of others is. For a timer, or by hand."""
    with reported(as_json=as_json):
        from ioa.cli.key_rotation import KeyFolder
        from ioa.cli.key_rotation import expire as expire_keys

        expire_keys(KeyFolder(out, pid_file), datetime.now(UTC), Terminal(as_json=as_json))


@credentials.command()
def revoke(
    out: Folder,
    name: Holder = None,
    tenant: OfTenant = None,
    subject: Annotated[bool, typer.Option("--subject", help="NAME is the subject (`sub`) of tokens; see --callout.")] = False,
    keep_goals: Annotated[bool, typer.Option("--keep-goals", help="Leave the goals of users alone, those that wait too.")] = False,
    pid_file: PidFile = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Throw somebody out: no key of this name is let in any more, its connections are closed, and agents are forgotten.

    What such agents led goes to others, or ends with a reason; goals of users are cancelled. With --subject it is who came last by
    its tokens. To have agents forgotten, and users' keys of HTTP and goals ended, run it with an admin's IOA_NATS_SEED. It can
    be given again until all were told.
    """
    with reported(as_json=as_json):
        from ioa.cli.credentials import parse_tenant
        from ioa.cli.foreground import run_to_end
        from ioa.cli.key_rotation import KeyFolder, revoke_subject
        from ioa.cli.key_rotation import revoke as revoke_keys

        keys, terminal = KeyFolder(out, pid_file, parse_tenant(tenant)), Terminal(as_json=as_json)
        if subject:
            run_to_end(revoke_subject(keys, name or "", url, terminal, keep_goals=keep_goals))
        else:
            run_to_end(revoke_keys(keys, name, url, datetime.now(UTC), terminal, keep_goals=keep_goals))
