"""`ioa dead …`: what could not be processed."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

dead = typer.Typer(invoke_without_command=True, help="List what could not be processed, or look at one such message.")

Number = Annotated[int, typer.Argument(metavar="N", min=1, help="Its number, as `ioa dead` lists it.", show_default=False)]


@dead.callback()
def list_all(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many, the newest first.")] = 50,
    before: Annotated[
        int | None, typer.Option("--before", metavar="N", min=1, help="Only those before this one.", show_default=False)
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the dead letters: number, when, why, and where the message was published; or look at one, or put it back."""
    if context.invoked_subcommand is not None:
        return
    with reported(as_json=as_json):
        from ioa.cli.dead_letters import list_letters
        from ioa.cli.foreground import run_to_end

        run_to_end(list_letters(url, limit, before, Terminal(as_json=as_json)))


@dead.command()
def show(number: Number, url: Url = None, as_json: AsJson = False) -> None:
    """Show a dead letter and the message as it came."""
    with reported(as_json=as_json):
        from ioa.cli.dead_letters import show_letter
        from ioa.cli.foreground import run_to_end

        run_to_end(show_letter(url, number, Terminal(as_json=as_json)))


@dead.command()
def retry(number: Number, url: Url = None, as_json: AsJson = False) -> None:
    """Publish the message again where it was published, and take it off the dead letters.

    Do it once what was in its way is mended. On a system that asks who you are only an admin may do this.
    """
    with reported(as_json=as_json):
        from ioa.cli.dead_letters import put_back
        from ioa.cli.foreground import run_to_end

        run_to_end(put_back(url, number, Terminal(as_json=as_json)))
