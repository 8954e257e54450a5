"""Results and dead letters, counted in metrics and recorded in the audit log when they are stored."""

from __future__ import annotations

from contextlib import suppress

import structlog
from prometheus_client import Counter, Histogram

from ioa.adapters.nats.stores.goal_records import NatsEndedGoals, NatsGoalRecords
from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.delivery import DeadLetters, Results
from ioa.ports.group_log import UnreadableEntryError
from ioa.protocol import subjects
from ioa.protocol.goal_order import find_goal_id
from ioa.protocol.goals import PROBE, EndedGoal, GoalResult, Reason
from ioa.protocol.ids import GoalName
from ioa.protocol.operation.audit import Deed
from ioa.protocol.operation.dead_letters import DeadReason
from ioa.runtime.audit_log import AuditLog
from ioa.telemetry import log_context

_log = structlog.get_logger(__name__)

accepted = Counter("ioa_goals_accepted_total", "Goals that were recorded and queued")
ended = Counter("ioa_goals_ended_total", "Goals that have a result, by reason", ["reason"])
goal_seconds = Histogram(
    "ioa_goal_duration_seconds",
    "Time from the acceptance of a goal to its result",
    buckets=(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0),
)
dead_letters = Counter("ioa_dead_letters_total", "Messages that could not be processed, by reason", ["reason"])

# All label values exist from the start, so that the first event is an increase.
for _reason in Reason:
    ended.labels(_reason)
for _dead in DeadReason:
    dead_letters.labels(_dead)


class RecordedResults:
    """Results, and the ends of goals whose data was removed. The results of probes are not counted.

    A goal that has ended keeps its end. The end is stored before the goal's data is removed, so a caller that finds an empty log
    reads the end afterwards.
    """

    def __init__(self, results: Results, removed: NatsEndedGoals, goals: NatsGoalRecords, audit: AuditLog) -> None:
        self._results = results
        self._removed = removed
        self._goals = goals
        self._audit = audit

    async def publish(self, result: GoalResult) -> bool:
        """Publish a result; return whether it is the first of its goal."""
        if not await self._results.publish(result):
            return False
        self._audit.note(Deed.ENDED, who=result.user, target=result.goal_id, why=result.reason)
        record = None
        with suppress(UnavailableError):
            record = await self._goals.find(result.name.comm_id)
        if record is None:
            ended.labels(result.reason).inc()
            return True
        log_context.bind_also(goal_id=result.goal_id, traceparent=record.goal.traceparent)
        if PROBE not in record.goal.labels:
            ended.labels(result.reason).inc()
            goal_seconds.observe(max(0.0, (result.finished_at - record.accepted_at).total_seconds()))
        return True

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Return a goal's result."""
        return await self._results.get(goal)

    async def remove(self, goal: GoalName) -> None:
        """Remove a goal's result."""
        await self._results.remove(goal)

    async def ending(self, goal: GoalName) -> EndedGoal | None:
        """Return how a goal ended; None if it is open."""
        result = await self._results.get(goal)
        if result is not None:
            return EndedGoal(goal_id=goal.goal_id, user=goal.user, reason=result.reason, ended_at=result.finished_at)
        return await self._removed.find(goal)


class RecordedDeadLetters:
    """Dead letters. The audit log does not contain their content."""

    def __init__(self, dead: DeadLetters, audit: AuditLog) -> None:
        self._dead = dead
        self._audit = audit
        self._unreadable: set[int] = set()

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Store a dead letter."""
        await self._dead.put(reason, why, subject=subject, data=data, key=key)
        dead_letters.labels(reason).inc()
        who = ""
        with suppress(InvalidInputError):  # it is no goal
            who, _ = subjects.parse_goal_subject(subject)
        self._audit.note(Deed.DISCARDED, who=who, target=find_goal_id(data) or "", refused=reason)

    async def put_unreadable(self, error: UnreadableEntryError) -> None:
        """Store a copy of an unreadable entry of a log when this process reads it for the first time. Raises no error."""
        if error.seq in self._unreadable:
            return
        _log.error("group_unreadable", comm_id=error.comm_id, seq=error.seq, error=error.message)
        key, subject = f"{error.comm_id}/{error.seq}", subjects.log(error.comm_id)
        try:
            await self.put(DeadReason.UNREADABLE_ENTRY, str(error), subject=subject, data=error.data, key=key)
            self._unreadable.add(error.seq)
        except UnavailableError as failure:
            _log.warning("not_set_aside", comm_id=error.comm_id, seq=error.seq, error=failure.message)
