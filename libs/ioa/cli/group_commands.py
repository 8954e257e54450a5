"""`ioa groups` and `ioa group …`."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Everything, Limit, Listing, OpenOnly, Url
from ioa.cli.terminal import Terminal

group = typer.Typer(no_args_is_help=True, help="Look at one group chat.")

CommIdArgument = Annotated[
    str,
    typer.Argument(metavar="COMM_ID", help="The group's id, or that of its goal, or its unique beginning.", show_default=False),
]


def groups(
    limit: Limit = 50,
    everything: Everything = False,
    open_only: OpenOnly = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the groups as a tree, the newest goal first: each goal's group with the teams nested in it."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.groups import list_groups

        run_to_end(list_groups(url, Listing(limit, everything, open_only), Terminal(as_json=as_json)))


@group.command()
def show(comm_id: CommIdArgument, url: Url = None, as_json: AsJson = False) -> None:
    """Show a group: its tree of nested teams, its tasks, and every message in order."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.groups import show_group

        run_to_end(show_group(url, comm_id, Terminal(as_json=as_json)))


@group.command()
def watch(comm_id: CommIdArgument, url: Url = None, as_json: AsJson = False) -> None:
    """Follow a group and its nested teams from the first message to the end."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.groups import watch_group

        code = run_to_end(watch_group(url, comm_id, Terminal(as_json=as_json)))
    raise typer.Exit(code)


@group.command()
def replay(comm_id: CommIdArgument, url: Url = None, as_json: AsJson = False) -> None:
    """Step through the group's log with the state machine and check that every state comes out as it is on record.

    Exits 1 if one does not.
    """
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.groups import replay_group

        run_to_end(replay_group(url, comm_id, Terminal(as_json=as_json)))
