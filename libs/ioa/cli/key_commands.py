"""`ioa keys …`: who comes in by HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

keys = typer.Typer(no_args_is_help=True, help="Who comes in by HTTP, through the gateway, and for what.")


@keys.command()
def create(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the key is called.", show_default=False)],
    scope: Annotated[
        str, typer.Option("--scope", metavar="SCOPES", help="What it is for, with commas between; seats:NAME answers as a person.")
    ] = "goals:read,goals:write,agents:read",
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="Whose goals are launched by it. Default: your own.", show_default=False),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="AGE", help="When it ends: 90d, 12h. Default: never.", show_default=False),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=VALUE",
            help="Goals that are launched by it bear this label, and it shows no others; may be repeated.",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, once: only a digest of it is kept.

    On a system that asks who you are only an admin may do it, and says for which user.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.http_keys import create_key
        from ioa.cli.pruning import parse_age

        lasting = None if expires is None else parse_age(expires)
        run_to_end(create_key(url, name, scope.split(","), user, lasting, label or (), Terminal(as_json=as_json)))


@keys.command("list")
def list_all(url: Url = None, as_json: AsJson = False) -> None:
    """List the keys: whose each is, what it is for, and when it ends."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.http_keys import list_keys

        run_to_end(list_keys(url, Terminal(as_json=as_json)))


@keys.command()
def revoke(
    key_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Its id, as `ioa keys list` shows it.", show_default=False)
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="All keys of this user.", show_default=False)] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key, or all keys of a user. Gateways end its streams and sessions within 5 s."""
    if (key_id is None) is (user is None):
        raise typer.BadParameter("Give either the ID of a key or --user.")
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.http_keys import revoke_key, revoke_user_keys
        from ioa.protocol.ids import UserId

        terminal = Terminal(as_json=as_json)
        run_to_end(revoke_user_keys(url, UserId(user), terminal) if user else revoke_key(url, key_id or "", terminal))


@keys.command("end-sessions")
def end_all_sessions(url: Url = None, as_json: AsJson = False) -> None:
    """End the sessions of all browsers, and what goes on by them, within 5 s. People sign in again; keys stay."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.http_keys import end_sessions

        run_to_end(end_sessions(url, Terminal(as_json=as_json)))
