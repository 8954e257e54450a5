"""`ioa trace export`: exports the trace of a goal."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from ioa.adapters.otlp import export_spans
from ioa.cli.command import command
from ioa.cli.options import GoalIdArgument
from ioa.cli.terminal import Terminal
from ioa.client.client import Client
from ioa.client.spans import GoalTrace, spans_of

trace = typer.Typer(no_args_is_help=True, help="Export traces of goals to OpenTelemetry.")


@trace.callback()
def _family() -> None:
    """Export traces of goals to OpenTelemetry."""


@command(trace, "export")
async def export_trace(
    system: Client,
    terminal: Terminal,
    goal_id: GoalIdArgument,
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Collector of OTLP over HTTP. Default: OTEL_EXPORTER_OTLP_ENDPOINT, otherwise port 4318 of this machine.",
        ),
    ] = None,
) -> None:
    """Export the trace of a goal: its groups, turns, tasks, calls of models, nested teams. Twice is the same trace."""
    goal = await system.find_goal(goal_id)
    made = GoalTrace()
    spans = [span async for page in spans_of(system, goal.comm_id, made) for span in page]
    if spans and made.is_sampled:
        await asyncio.to_thread(export_spans, made.trace_id, spans, endpoint)
    terminal.show(
        {"goal_id": goal.goal_id, "trace_id": made.trace_id, "spans": len(spans), "sampled": made.is_sampled},
        f"Exported {len(spans)} spans of trace {made.trace_id}."
        if made.is_sampled
        else "This goal was launched with the request to keep no trace of it; nothing was exported.",
    )
