"""Ended tasks of a group, read from its log: assignee, text, duration, success and cost.

Only routers and group setup write the log, so none of it depends on the word of the group's owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.group.events import Entry, Said, SubgroupClosed
from ioa.group.state import ClosedTask
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, InformTaskResult, SyncTaskAssignment, TaskOutcome
from ioa.protocol.outcomes import MAX_RECORDED_NEED_CHARS
from ioa.protocol.usage import NOTHING, Usage


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that its assignee has done or failed.

    Attributes:
        need: The beginning of the task's text.
        done: Whether it was done, and not rejected afterwards.
        at: When it ended.
        took: Time since it was assigned.
        usage: Its cost, by its last report.
    """

    task_id: TaskId
    assignee: AgentId
    need: str
    done: bool
    at: datetime
    took: timedelta
    usage: Usage = NOTHING


class EndedTasks:
    """Collects the ended tasks of a log, entry by entry from the first one."""

    def __init__(self) -> None:
        self._needs: dict[TaskId, str] = {}
        self._assigned: dict[TaskId, datetime] = {}
        self._usages: dict[TaskId, Usage] = {}
        self._closed: dict[TaskId, tuple[ClosedTask, datetime]] = {}
        self._unfit: set[TaskId] = set()

    def apply(self, entries: Iterable[Entry]) -> None:
        """Read the entries that follow."""
        for entry in entries:
            self._read(entry)
            for task in entry.state.tasks:
                self._assigned.setdefault(task.task_id, entry.event.at)
                if isinstance(task, ClosedTask):
                    _, at = self._closed.get(task.task_id, (task, entry.event.at))
                    self._closed[task.task_id] = task, at

    def _read(self, entry: Entry) -> None:
        match entry.event:
            case SubgroupClosed(task_id=task_id, usage=spent):
                self._usages[task_id] = spent
            case Said(message=message):
                match message.payload:
                    case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
                        self._needs |= {one.task_id: one.task_abstract or one.task_desc for one in specs}
                    case InformTaskResult(task_id=task_id) as report:
                        self._usages[task_id] = report.usage or NOTHING
                        if report.outcome is TaskOutcome.FAILED and (report.declined or report.lacks):
                            self._unfit.add(task_id)
                    case _:
                        pass
            case _:
                pass

    def __iter__(self) -> Iterator[EndedTask]:
        """Yield the tasks in the order in which they ended.

        Left out are cancelled tasks; tasks that did not fit, because the assignee declined them or their files were missing; and
        tasks that not all members know, because an agent's record would reveal them. A rejected task was not done.
        """
        for task_id, (task, at) in self._closed.items():
            if task.outcome is TaskOutcome.CANCELLED or task.earshot or task_id in self._unfit:
                continue
            yield EndedTask(
                task_id=task_id,
                assignee=task.assignee,
                need=self._needs.get(task_id, "")[:MAX_RECORDED_NEED_CHARS],
                done=task.outcome is TaskOutcome.DONE,
                at=at,
                took=max(timedelta(0), at - self._assigned[task_id]),
                usage=self._usages.get(task_id, NOTHING),
            )
