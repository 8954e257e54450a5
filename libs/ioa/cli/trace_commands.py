"""`ioa trace …`."""

from __future__ import annotations

from typing import Annotated

import typer

from ioa.cli.failures import reported
from ioa.cli.goal_commands import GoalIdArgument
from ioa.cli.options import AsJson, Url
from ioa.cli.terminal import Terminal

trace = typer.Typer(no_args_is_help=True, help="Hand traces of goals to OpenTelemetry.")


@trace.callback()
def _named() -> None:
    """Hand traces of goals to OpenTelemetry."""


@trace.command()
def export(
    goal_id: GoalIdArgument,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where traces are taken by OTLP over HTTP. Default: OTEL_EXPORTER_OTLP_ENDPOINT, else this machine, port 4318.",
            show_default=False,
        ),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Export the trace of a goal: its groups, turns, tasks, calls of models, nested teams. Twice is the same trace."""
    with reported(as_json=as_json):
        from ioa.cli.foreground import run_to_end
        from ioa.cli.traces import export_trace

        run_to_end(export_trace(url, goal_id, endpoint, Terminal(as_json=as_json)))
