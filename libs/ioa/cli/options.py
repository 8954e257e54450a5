"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The system's NATS server. Default: IOA_NATS_URL, otherwise the url in .ioa (or IOA_DATA), otherwise nats://127.0.0.1:4222.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, one document or one object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the answer and the files, not the progress.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Write the produced files into DIR/<goal id>, a new folder.")]
Data = Annotated[Path, typer.Option(metavar="DIR", envvar="IOA_DATA", show_envvar=False, help="Holds everything the system keeps.")]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Let agents of the pool join that run code which others write; they need a sandbox.")
]
Inputs = Annotated[list[Path], typer.Option("--input", "-i", metavar="FILE", help="A file the goal is about.")]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="Timeout of the goal.", show_default="3600")]
PoolOfGoal = Annotated[Path | None, typer.Option(metavar="FILE", help="Start a system with these agents for this goal.")]
Replicas = Annotated[int | None, typer.Option(min=1, max=10_000, help="Join as replicas 0 to N - 1, all in this process.")]
Limit = Annotated[int, typer.Option(min=1, max=1_000, help="Of how many goals, the newest first.")]
Everything = Annotated[bool, typer.Option("--all", help="Of all goals, as they are read; with --json one object a line.")]
Labels = Annotated[list[str], typer.Option("--label", metavar="NAME=VALUE", help="A label of the goal; several may be given.")]
OpenOnly = Annotated[bool, typer.Option("--open", help="Only goals that have not ended.")]
GoalIdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The goal's id or its unique beginning, as `ioa goals` lists it; `USER/ID` of another user's."
    ),
]

DATA = Path(".ioa")
"""Default folder of a system's data; commands look here for a running system."""
WEB_PORT = 4280
"""Default port of HTTP."""

_PAGE_OF_ALL = 200
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Listing:
    """The requested part of a list."""

    limit: int
    everything: bool
    open_only: bool
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> int:
        """The number of items to request at once."""
        return _PAGE_OF_ALL if self.everything else self.limit


def parse_age(written: str) -> timedelta:
    """Parse an age such as `7d`, `12h`, `30m` or `90s`.

    Raises:
        BadParameter: It is no age.
    """
    found = re.fullmatch(r"(\d{1,6})([smhd])", written.strip())
    if found is None:
        raise typer.BadParameter(f"{written!r} is no age: write a number and one of s, m, h, d, such as 7d.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})
