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
MAX_TASKS = 200_000
"""Maximum number of tasks, about 20 MB. Above it, the groups without a report for the longest time are removed."""


class ReportTimes:
    """Time of the last progress report of each task.

    Args:
        since: Time from which this router receives reports.
        max_tasks: Maximum number of tasks.
    """

    def __init__(self, since: datetime, *, max_tasks: int = MAX_TASKS) -> None:
        self._since = since
        self._max_tasks = max_tasks
        self._groups: OrderedDict[CommId, dict[TaskId, datetime]] = OrderedDict()
        self._count = 0

    def add(self, comm_id: CommId, task_id: TaskId, at: datetime) -> None:
        """Record a report."""
        tasks = self._groups.setdefault(comm_id, {})
        self._groups.move_to_end(comm_id)
        self._count += task_id not in tasks
        tasks[task_id] = max(at, tasks.get(task_id, at))
        while self._count > self._max_tasks:
            self.remove(next(iter(self._groups)))

    def is_too_soon(self, state: GroupState, task_id: TaskId, at: datetime) -> bool:
        """Return whether the previous report of the task is less than the minimum interval old."""
        before = self._groups.get(state.comm_id, {}).get(task_id)
        return before is not None and at - before < min(MIN_INTERVAL, state.limits.task_lease / 4)

    def restart(self, since: datetime) -> None:
        """Record that reports may have been missed before `since`."""
        self._since = since

    def evidence(self, state: GroupState, at: datetime) -> tuple[TaskHeard, ...]:
        """Return the reports that renew leases of the group's open tasks if any lease has expired; remove closed tasks.

        A router that did not receive reports during the whole lease of a suspect task cannot conclude that no report was sent. For
        such a task, the start of receiving counts as a report.
        """
        known = self._groups.get(state.comm_id, {})
        self._remove_closed(state, known)
        if all(task.lease_until > at for task in state.open_tasks):
            return ()
        found = []
        for task in state.open_tasks:
            heard = known.get(task.task_id)
            if task.suspect:
                heard = max(heard or self._since, self._since)
            if heard is not None and heard + state.lease_of(task.assignee) > task.lease_until:
                found.append(TaskHeard(task_id=task.task_id, at=heard))
        return tuple(found)

    def remove(self, comm_id: CommId) -> None:
        """Remove a group."""
        self._count -= len(self._groups.pop(comm_id, {}))

    def _remove_closed(self, state: GroupState, known: dict[TaskId, datetime]) -> None:
        open_ids = {task.task_id for task in state.open_tasks}
        for task_id in known.keys() - open_ids:
            del known[task_id]
            self._count -= 1
        if not known:
            self._groups.pop(state.comm_id, None)
