"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="The system's NATS server. Default: IOA_NATS_URL, else .ioa/url of this folder, else nats://127.0.0.1:4222.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, one document or one object a line.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write the produced files to this folder.", show_default=False)
]
Data = Annotated[Path, typer.Option("--data", metavar="DIR", help="Holds everything the system keeps.")]

DATA = Path(".ioa")
"""The folder a system keeps its data in unless it is told otherwise; commands look here for a system that runs."""
