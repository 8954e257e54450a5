"""Groups with an unreadable entry: end their goals at the deadline, and keep the timers that other groups need."""

from __future__ import annotations

from datetime import datetime

import structlog

from ioa.errors import InvalidInputError, UnavailableError
from ioa.ports.clock import Clock
from ioa.ports.delivery import GoalRecords, Results, Timers
from ioa.ports.group_log import GroupLog, UnreadableEntryError
from ioa.protocol.goals import GoalResult, Reason
from ioa.protocol.ids import CommId
from ioa.protocol.subjects import parse_comm

_log = structlog.get_logger(__name__)


class UnrecoverableGroups:
    """End goals of groups that cannot continue."""

    def __init__(self, log: GroupLog, goals: GoalRecords, results: Results, timers: Timers, clock: Clock) -> None:
        self._log = log
        self._goals = goals
        self._results = results
        self._timers = timers
        self._clock = clock

    async def end_goal(self, error: UnreadableEntryError, fired_at: datetime) -> None:
        """Publish a failed result for the group's goal at its deadline; before the deadline, schedule the timer again.

        The log gets no entry, because nothing can follow an unreadable entry. A nested group has no accepted goal; its task ends in
        the parent group, by the deadline of the task or of the goal.

        Raises:
            UnavailableError: The timer must be delivered again.
        """
        record = await self._goals.find(error.comm_id)
        if record is None:
            return
        now = max(self._clock.now(), fired_at)
        if now < record.deadline:
            await self._timers.schedule(error.comm_id, record.deadline)
            return
        result = GoalResult(
            goal_id=record.goal.goal_id,
            user=record.goal.user,
            reason=Reason.FAILED,
            content=f"The group could not go on: {error.message}",
            comm_id=error.comm_id,
            turns=0,
            finished_at=now,
        )
        if await self._results.publish(result):
            _log.error("goal_ended_unread", goal_id=result.goal_id, comm_id=result.comm_id, seq=error.seq)

    async def check_removable(self, subject: str) -> None:
        """Check that a timer whose handling failed repeatedly may become a dead letter.

        Raises:
            UnavailableError: The timer must stay: its group is open and readable, and would not continue without it.
        """
        try:
            comm_id: CommId = parse_comm(subject)
            head = await self._log.last(comm_id)
        except (InvalidInputError, UnreadableEntryError):
            return
        if head is not None and not head.entry.state.phase.is_terminal:
            raise UnavailableError(f"The timer of the group {comm_id} stays: the group is open.")
