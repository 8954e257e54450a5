"""Exports the trace of each goal that ends by OpenTelemetry."""

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
from ioa.protocol.operation.trace import Span

MOST_SPANS = 20_000
"""Maximum spans of a goal that are shown or exported. Its log may contain a hundred times as many, of some kB each."""
_MOST_WAITING = 1_000

_log = structlog.get_logger(__name__)

exported = Counter("ioa_gateway_traces_total", "Traces of goals that ended, by what became of them", ["outcome"])


class TraceExport:
    """Exports one trace at a time, without a retry.

    Args:
        groups: Reads logs.
        hand_over: Exports the spans of a trace, by its id. It blocks.
    """

    def __init__(self, groups: Client, hand_over: Callable[[str, Sequence[Span]], None]) -> None:
        self._groups = groups
        self._hand_over = hand_over
        self._waiting = asyncio.Queue[GoalName](_MOST_WAITING)

    def ended(self, result: GoalResult) -> None:
        """Queue the trace of a goal that has ended."""
        try:
            self._waiting.put_nowait(result.name)
        except asyncio.QueueFull:
            _tell("dropped", result.name, "the queue is full")

    async def keep(self) -> None:
        """Export until cancelled."""
        while True:
            await self.export(await self._waiting.get())

    async def export(self, goal: GoalName) -> None:
        """Export the trace of a goal that has ended, unless its launch disabled sampling; a failure is logged."""
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
