"""What a router has heard of tasks since it began to listen: the evidence by which leases are renewed when a timer looks at them.

It is memory only. Evidence of a router that stopped or lost its connection is lost. Such a task becomes suspect and gets one
more lease (decision 4).
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta

from ioa.group.events import TaskHeard
from ioa.group.state import GroupState
from ioa.protocol.ids import CommId, TaskId

LEAST_BETWEEN = timedelta(milliseconds=800)
"""Agents report once a second at most, or three times per lease. What comes sooner is not passed on, since each goes to all who
follow."""
MAX_TASKS = 200_000
"""Of so many tasks a router knows when they were last reported on, about 20 MB; whole groups are forgotten, the quietest first."""


class HeardProgress:
    """When progress was last reported on which task.

    Args:
        since: When this router began to listen.
    """

    def __init__(self, since: datetime, *, max_tasks: int = MAX_TASKS) -> None:
        self._since = since
        self._max_tasks = max_tasks
        self._groups: OrderedDict[CommId, dict[TaskId, datetime]] = OrderedDict()
        self._count = 0

    def note(self, comm_id: CommId, task_id: TaskId, at: datetime) -> None:
        """Remember a report."""
        tasks = self._groups.setdefault(comm_id, {})
        self._groups.move_to_end(comm_id)
        self._count += task_id not in tasks
        tasks[task_id] = max(at, tasks.get(task_id, at))
        while self._count > self._max_tasks:
            self.forget(next(iter(self._groups)))

    def is_too_soon(self, state: GroupState, task_id: TaskId, at: datetime) -> bool:
        """Whether a task was reported on a moment ago, behind its first report, so that another one tells nothing."""
        before = self._groups.get(state.comm_id, {}).get(task_id)
        return before is not None and at - before < min(LEAST_BETWEEN, state.limits.task_lease / 4)

    def listen_anew(self, since: datetime) -> None:
        """Note that reports may have been missed until now."""
        self._since = since

    def evidence(self, state: GroupState, at: datetime) -> tuple[TaskHeard, ...]:
        """List what renews the leases of a group's open tasks, all of them as soon as one has run out; forget closed tasks.

        Who did not listen during the whole lease of a suspect task cannot witness that nobody reported: it counts as heard when the
        listening began.
        """
        known = self._groups.get(state.comm_id, {})
        self._forget_closed(state, known)
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

    def forget(self, comm_id: CommId) -> None:
        """Forget a group."""
        self._count -= len(self._groups.pop(comm_id, {}))

    def _forget_closed(self, state: GroupState, known: dict[TaskId, datetime]) -> None:
        open_ids = {task.task_id for task in state.open_tasks}
        for task_id in known.keys() - open_ids:
            del known[task_id]
            self._count -= 1
        if not known:
            self._groups.pop(state.comm_id, None)
