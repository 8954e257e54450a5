"""Exports the trace of each goal that ends by OpenTelemetry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog
from prometheus_client import Counter

from ioa.client.client import Client
from ioa.client.spans import GoalTrace, read_spans
from ioa.errors import IoaError, PayloadTooLargeError, reason_of
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import CommId, GoalName
from ioa.protocol.operation.trace import Span

MOST_SPANS = 20_000
"""Maximum spans of a goal that are shown or exported."""
_MOST_WAITING = 1_000
_HINT = "`ioa trace export` exports it."

_log = structlog.get_logger(__name__)

exported = Counter("ioa_gateway_traces_total", "Traces of goals that ended, by what became of them", ["outcome"])


async def read_trace(groups: Client, comm_id: CommId, made: GoalTrace) -> list[Span]:
    """Read the spans of a goal that have ended, or raise `PayloadTooLargeError` if there are too many."""
    spans = list[Span]()
    async for span in read_spans(groups, comm_id, made):
        spans.append(span)
        if len(spans) > MOST_SPANS:
            raise PayloadTooLargeError(f"The trace has more than {MOST_SPANS:,} spans.", hint=_HINT)
    return spans


class TraceExport:
    """Exports one trace at a time, without a retry. `hand_over` exports the spans of a trace, and blocks."""

    def __init__(self, groups: Client, hand_over: Callable[[str, Sequence[Span]], None]) -> None:
        self._groups = groups
        self._hand_over = hand_over
        self._waiting = asyncio.Queue[GoalName](_MOST_WAITING)

    def ended(self, result: GoalResult) -> None:
        """Queue the trace of a goal that has ended, unless the queue is full."""
        if self._waiting.full():
            exported.labels("dropped").inc()
        else:
            self._waiting.put_nowait(result.name)

    async def keep(self) -> None:
        """Export until cancelled."""
        while True:
            await self.export(await self._waiting.get())

    async def export(self, goal: GoalName) -> None:
        """Export the trace of a goal that has ended, unless its launch disabled sampling; a failure is logged."""
        made = GoalTrace(with_live=False)
        try:
            spans = await read_trace(self._groups, goal.comm_id, made)
            if spans and made.is_sampled:
                await asyncio.to_thread(self._hand_over, made.trace_id, spans)
                exported.labels("exported").inc()
        except Exception as error:  # noqa: BLE001 - one goal's bug must not end the gateway
            exported.labels("failed").inc()
            bug = None if isinstance(error, IoaError) else error
            _log.warning("trace_not_exported", goal_id=goal.goal_id, error=reason_of(error), hint=_HINT, exc_info=bug)
