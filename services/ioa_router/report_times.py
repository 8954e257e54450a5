"""Times of the progress reports that a router has received: evidence for renewing task leases when a timer fires.

The times exist in memory only. When a router stops or loses its connection, its evidence is lost. An affected task becomes suspect
and gets one more lease.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta

from ioa.group.events import TaskHeard
from ioa.group.state import GroupState
from ioa.protocol.ids import CommId, TaskId

MIN_INTERVAL = timedelta(milliseconds=800)
"""Minimum time between two reports of a task. A report that comes sooner is not sent to followers."""
_MAX_TASKS = 100_000
"""Maximum number of tasks, about 20 MB. Above it, the tasks without a report for the longest time are removed."""


class ReportTimes:
    """Time of the last progress report of each task.

    Args:
        since: Time from which this router receives reports.
    """

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._times: OrderedDict[tuple[CommId, TaskId], datetime] = OrderedDict()

    def add(self, comm_id: CommId, task_id: TaskId, at: datetime) -> None:
        """Record a report."""
        key = comm_id, task_id
        self._times[key] = max(at, self._times.get(key, at))
        self._times.move_to_end(key)
        if len(self._times) > _MAX_TASKS:
            self._times.popitem(last=False)

    def is_too_soon(self, state: GroupState, task_id: TaskId, at: datetime) -> bool:
        """Return whether the previous report of the task is less than the minimum interval old."""
        before = self._times.get((state.comm_id, task_id))
        return before is not None and at - before < min(MIN_INTERVAL, state.limits.task_lease / 4)

    def restart(self, since: datetime) -> None:
        """Record that reports may have been missed before `since`."""
        self._since = since

    def evidence(self, state: GroupState, at: datetime) -> tuple[TaskHeard, ...]:
        """Return the reports that renew leases of the group's open tasks, if any lease has expired.

        A router that did not receive reports during the whole lease of a suspect task cannot conclude that no report was sent. For
        such a task, the start of receiving counts as a report.
        """
        if all(task.lease_until > at for task in state.open_tasks):
            return ()
        found = []
        for task in state.open_tasks:
            heard = self._times.get((state.comm_id, task.task_id))
            if task.suspect:
                heard = max(heard or self._since, self._since)
            if heard is not None and heard + state.lease_of(task.assignee) > task.lease_until:
                found.append(TaskHeard(task_id=task.task_id, at=heard))
        return tuple(found)
