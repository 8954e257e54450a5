"""Exporting the trace of a goal."""

from __future__ import annotations

import asyncio

from ioa.adapters.otlp import export_spans
from ioa.cli.reach import open_reached_system
from ioa.cli.terminal import Terminal
from ioa.client.spans import GoalTrace, spans_of


async def export_trace(url: str | None, start: str, endpoint: str | None, terminal: Terminal) -> None:
    """Make a goal's trace of its logs and hand it over; of what still runs nothing is in it yet.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
        UnavailableError: The system, or whoever takes traces, does not answer.
    """
    async with open_reached_system(url) as system:
        goal = await system.find_goal(start)
        made = GoalTrace()
        spans = [span async for page in spans_of(system, goal.comm_id, made) for span in page]
    if spans and made.is_sampled:
        await asyncio.to_thread(export_spans, made.trace_id, spans, endpoint)
    if terminal.as_json:
        terminal.document({"goal_id": goal.goal_id, "trace_id": made.trace_id, "spans": len(spans), "sampled": made.is_sampled})
    elif not made.is_sampled:
        terminal.print("Whoever launched this goal wants no trace of it to be kept; nothing was exported.")
    else:
        terminal.print(f"Exported {len(spans)} spans of trace {made.trace_id}.")
