"""Handing the trace of each goal that ends to whatever understands OpenTelemetry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog
from prometheus_client import Counter

from ioa.client.client import Client
from ioa.client.spans import GoalTrace, read_spans
from ioa.errors import IoaError
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.trace import Span

MOST_SPANS = 20_000
"""How many spans of a goal are shown or exported: its log may hold a hundred times as much, of which each takes some kB."""
_MOST_WAITING = 1_000

_log = structlog.get_logger(__name__)

exported = Counter("ioa_gateway_traces_total", "Traces of goals that ended, by what became of them", ["outcome"])


class TraceExport:
    """Exports one trace at a time; whoever takes traces holds up nothing else. What it does not take is not tried again.

    Args:
        groups: Where logs are read.
        hand_over: Hands over the spans of a trace, by its id. It blocks.
    """

    def __init__(self, groups: Client, hand_over: Callable[[str, Sequence[Span]], None]) -> None:
        self._groups = groups
        self._hand_over = hand_over
        self._waiting = asyncio.Queue[GoalName](_MOST_WAITING)

    def ended(self, result: GoalResult) -> None:
        """Have the trace of a goal that has ended exported."""
        try:
            self._waiting.put_nowait(result.name)
        except asyncio.QueueFull:
            _tell("dropped", result.name, "as many wait as may")

    async def keep(self) -> None:
        """Export for ever."""
        while True:
            await self.export(await self._waiting.get())

    async def export(self, goal: GoalName) -> None:
        """Export the trace of a goal that has ended, unless whoever launched it wants none; one that nobody takes is logged."""
        try:
            made, spans = GoalTrace(with_live=False), list[Span]()
            async for span in read_spans(self._groups, goal.comm_id, made):
                if not made.is_sampled:
                    return
                spans.append(span)
                if len(spans) > MOST_SPANS:
                    _tell("failed", goal, f"it has more than {MOST_SPANS:,} spans")
                    return
            if spans:
                await asyncio.to_thread(self._hand_over, made.trace_id, spans)
                exported.labels("exported").inc()
        except IoaError as error:
            _tell("failed", goal, error.message)
        except Exception:  # noqa: BLE001 - one goal's bug must not end the gateway
            exported.labels("failed").inc()
            _log.exception("trace_not_exported", goal_id=goal.goal_id, comm_id=goal.comm_id)


def _tell(outcome: str, goal: GoalName, why: str) -> None:
    exported.labels(outcome).inc()
    _log.warning("trace_not_exported", goal_id=goal.goal_id, comm_id=goal.comm_id, why=why, hint="`ioa trace export` does.")
