"""Goals from acceptance to result, and what was refused, counted where it is stored."""

from __future__ import annotations

import structlog
from prometheus_client import Counter, Histogram

from ioa.errors import UnavailableError
from ioa.ports.delivery import DeadLetters, GoalRecords, Results
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.goals import GoalRecord, GoalResult, Reason
from ioa.protocol.ids import GoalName
from ioa.protocol.labels import PROBE
from ioa.telemetry import log_context

_log = structlog.get_logger(__name__)

accepted = Counter("ioa_goals_accepted_total", "Goals put on record and queued")
ended = Counter("ioa_goals_ended_total", "Goals that got their result, by reason", ["reason"])
goal_seconds = Histogram(
    "ioa_goal_duration_seconds",
    "Time from a goal's acceptance to its result",
    buckets=(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0),
)
removed = Counter(
    "ioa_goals_removed_total", "Ended goals that were removed with all that belongs to them, since they are old enough"
)
not_removed = Counter("ioa_goals_not_removed_total", "Attempts to remove an ended goal that failed; it is tried again")
dead_letters = Counter("ioa_dead_letters_total", "Messages that could not be processed, by reason", ["reason"])

# All label values are there from the start, so that the first dead letter is an increase.
for _reason in Reason:
    ended.labels(_reason.value)
for _dead in DeadReason:
    dead_letters.labels(_dead)


class CountedResults:
    """Results, counted with the time their goals took."""

    def __init__(self, results: Results, goals: GoalRecords) -> None:
        self._results = results
        self._goals = goals

    async def publish(self, result: GoalResult) -> bool:
        """Publish unless there is one already, and count it if it was the first, and of no probe."""
        first = await self._results.publish(result)
        if first:
            record = await self._record_of(result)
            if record is None or PROBE not in record.goal.labels:
                _count(result, record)
        return first

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Read a goal's result."""
        return await self._results.get(goal)

    async def _record_of(self, result: GoalResult) -> GoalRecord | None:
        """Look up when the goal was accepted, and in which trace; if it cannot be told, the result stands all the same."""
        try:
            record = await self._goals.find(result.name.comm_id)
        except UnavailableError as error:
            _log.debug("goal_not_timed", goal_id=result.goal_id, error=error.message)
            return None
        if record is not None:
            log_context.bind_also(goal_id=result.goal_id, traceparent=record.goal.traceparent)
        return record


def _count(result: GoalResult, record: GoalRecord | None) -> None:
    ended.labels(result.reason.value).inc()
    if record is not None:
        goal_seconds.observe(max(0.0, (result.finished_at - record.accepted_at).total_seconds()))


class CountedDeadLetters:
    """Dead letters, counted."""

    def __init__(self, dead: DeadLetters) -> None:
        self._dead = dead

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a refused message and count it."""
        await self._dead.put(reason, why, subject=subject, data=data, key=key)
        dead_letters.labels(reason).inc()
