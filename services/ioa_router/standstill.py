"""What becomes of goals and timers of groups that nobody can take any further."""

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


class Standstill:
    """End goals at their deadlines although their logs cannot be read, and keep timers that somebody may still need."""

    def __init__(self, log: GroupLog, goals: GoalRecords, results: Results, timers: Timers, clock: Clock) -> None:
        self._log = log
        self._goals = goals
        self._results = results
        self._timers = timers
        self._clock = clock

    async def end_goal(self, error: UnreadableEntryError, fired_at: datetime) -> None:
        """Publish that a goal has failed whose group cannot be read, once its deadline has come; before that, wait for it.

        No entry says so: nothing can follow an entry that cannot be read. A nested team has no goal on record; its task ends in its
        parent's group, by its own deadline or the goal's.

        Raises:
            UnavailableError: The timer has to come back later.
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

    async def keep_timer(self, subject: str) -> None:
        """See that a timer may be dropped that acting on has failed again and again.

        Raises:
            UnavailableError: It may not: its group is open and can be read, and would stand still without it.
        """
        try:
            comm_id: CommId = parse_comm(subject)
            head = await self._log.last(comm_id)
        except (InvalidInputError, UnreadableEntryError):
            return
        if head is not None and not head.entry.state.phase.is_terminal:
            raise UnavailableError(f"The timer of the group {comm_id} stays: the group is open.")
