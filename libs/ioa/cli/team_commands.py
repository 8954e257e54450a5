"""`ioa team …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.options import AsJson
from ioa.cli.terminal import Terminal

team = typer.Typer(no_args_is_help=True, help="Teams with a policy: who speaks when, and what leads on.")

TeamFile = Annotated[Path, typer.Argument(metavar="FILE", help="A team file, TOML or JSON.", show_default=False)]


@team.command()
def check(file: TeamFile, as_json: AsJson = False) -> None:
    """Say all that is wrong with a team file, and what is worth a thought. Exits 2 if there is an error."""
    with reported(as_json=as_json):
        from ioa.cli.teams import check_file

        code = check_file(file, Terminal(as_json=as_json))
    raise typer.Exit(code)


@team.command()
def draw(file: TeamFile) -> None:
    """Draw the policy of a team as a Mermaid diagram: a box for each node, an arrow for each exit."""
    with reported(as_json=False):
        from ioa.cli.teams import draw_file

        draw_file(file, Terminal(as_json=False))
