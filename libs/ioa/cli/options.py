"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The system's NATS server. Default: IOA_NATS_URL, otherwise the url in .ioa (or IOA_DATA), otherwise nats://127.0.0.1:4222.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, one document or one object a line.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write the produced files into DIR/<goal id>, a new folder.", show_default=False),
]
Traces = Annotated[
    Path | None,
    typer.Option("--traces", metavar="DIR", help="Write what tasks noted of their steps into DIR/<goal id>.", show_default=False),
]
Costs = Annotated[
    bool,
    typer.Option(
        "--costs", help="Show too what the goal's group has spent, by what for, and each call of a model, in nested teams too."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the answer and the files, not how it goes.")]
Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", envvar="IOA_DATA", show_envvar=False, help="Holds everything the system keeps.")
]

AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Let agents of the pool join that run code which others write; they need a sandbox.")
]

Inputs = Annotated[list[Path], typer.Option("--input", "-i", metavar="FILE", help="A file the goal is about.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="When to give up.", show_default="3600")]
PoolOfGoal = Annotated[
    Path | None,
    typer.Option("--pool", metavar="FILE", help="Start a system with these agents for this goal.", show_default=False),
]

DATA = Path(".ioa")
"""The folder a system keeps its data in unless it is told otherwise; commands look here for a system that runs."""

WEB_PORT = 4280
"""Where HTTP is served unless it is said where."""

Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Of how many goals, the newest first.")]
Everything = Annotated[bool, typer.Option("--all", help="Of all goals, as they are read; with --json one object a line.")]
Labels = Annotated[
    list[str], typer.Option("--label", metavar="NAME=VALUE", help="A label of the goal; several may be given.", show_default=False)
]
OpenOnly = Annotated[bool, typer.Option("--open", help="Only what has not ended.")]

_PAGE_OF_ALL = 200


@dataclass(frozen=True)
class Listing:
    """Which part of a list is asked for."""

    limit: int
    everything: bool
    open_only: bool
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> int:
        """How much is asked for at once."""
        return _PAGE_OF_ALL if self.everything else self.limit


GoalIdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The goal's id or its unique beginning, as `ioa goals` lists it; `USER/ID` of another user's.",
        show_default=False,
    ),
]
