"""What a group's log tells of its tasks that have ended: what was asked of whom, how long it had, how it went, what it cost.

Only routers and group setup write the log, so that none of it is the word of the group's owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ioa.group.events import Entry, GroupLaunched, Said, SubgroupClosed
from ioa.group.state import ClosedTask, OpenTask
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import AsyncTaskAssignment, InformTaskResult, SyncTaskAssignment, TaskOutcome
from ioa.protocol.outcomes import MAX_RECORDED_NEED_CHARS, ToldTask, unclear_tasks
from ioa.protocol.usage import NOTHING, Usage


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that its assignee has done or failed.

    Attributes:
        need: The beginning of what was asked for.
        patience: How long it had by its own deadline; None if only the group's ended it.
        done: Whether it was done, and not rejected since.
        at: When it ended.
        took: How long that was after it was given out.
        usage: What it cost, by its last report.
    """

    assignee: AgentId
    need: str
    patience: timedelta | None
    done: bool
    at: datetime
    took: timedelta
    usage: Usage = NOTHING


class EndedTasks:
    """Folds a log, an entry after the other from the first one on, into the tasks that have ended."""

    def __init__(self) -> None:
        self._needs: dict[TaskId, str] = {}
        self._given: dict[TaskId, tuple[datetime, timedelta | None]] = {}
        self._usages: dict[TaskId, Usage] = {}
        self._closed: dict[TaskId, tuple[ClosedTask, datetime]] = {}
        self._inputs: frozenset[str] = frozenset()
        self._uses: dict[TaskId, tuple[TaskId, ...]] = {}
        self._names: dict[TaskId, frozenset[str]] = {}
        """Which objects the results of tasks name."""
        self._lacks: dict[TaskId, frozenset[str]] = {}

    def apply(self, entries: Iterable[Entry]) -> None:
        """Take in the entries that follow."""
        for entry in entries:
            self._note(entry)
            for task in entry.state.tasks:
                if isinstance(task, OpenTask) and task.task_id not in self._given:
                    patience = None if task.deadline is None else task.deadline - entry.event.at
                    self._given[task.task_id] = entry.event.at, patience
                if isinstance(task, ClosedTask):
                    _, at = self._closed.get(task.task_id, (task, entry.event.at))
                    self._closed[task.task_id] = task, at

    def _note(self, entry: Entry) -> None:
        match entry.event:
            case GroupLaunched(charter=charter):
                self._inputs = frozenset([one.object_name for one in charter.inputs])
            case SubgroupClosed(task_id=task_id, usage=spent, artifacts=artifacts):
                self._usages[task_id] = spent
                self._names[task_id] = frozenset([one.object_name for one in artifacts])
            case Said(message=message):
                match message.payload:
                    case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
                        self._needs |= {one.task_id: one.task_abstract or one.task_desc for one in specs}
                        self._uses |= {one.task_id: one.uses for one in specs}
                    case InformTaskResult(task_id=task_id, usage=told, artifacts=artifacts, lacks=lacks):
                        self._usages[task_id] = told or NOTHING
                        self._names[task_id] = frozenset([one.object_name for one in artifacts])
                        self._lacks[task_id] = frozenset(lacks)
                    case _:
                        pass
            case _:
                pass

    def __iter__(self) -> Iterator[EndedTask]:
        """Yield them in the order in which they ended.

        What was cancelled says nothing of its assignee, and is left out. So is what not all of the group were told of: a member
        could read off an agent's record who did it. Left out as well is what failed since files were not there to which others
        refer, with the results that refer to them (`unclear_tasks`); one that its group has rejected was not done.
        """
        unclear = self._unclear()
        for task_id, (task, at) in self._closed.items():
            if task.outcome is TaskOutcome.CANCELLED or task.earshot or task_id not in self._given:
                continue
            if task_id in unclear and task.outcome is not TaskOutcome.REJECTED:
                continue
            given, patience = self._given[task_id]
            yield EndedTask(
                assignee=task.assignee,
                need=self._needs.get(task_id, "")[:MAX_RECORDED_NEED_CHARS],
                patience=patience,
                done=task.outcome is TaskOutcome.DONE,
                at=at,
                took=max(timedelta(0), at - given),
                usage=self._usages.get(task_id, NOTHING),
            )

    def _unclear(self) -> frozenset[TaskId]:
        told = {
            task_id: ToldTask(
                assignee=task.assignee,
                failed=task.outcome is TaskOutcome.FAILED,
                uses=self._uses.get(task_id, ()),
                names=self._names.get(task_id, frozenset()),
                lacks=self._lacks.get(task_id, frozenset()),
            )
            for task_id, (task, _) in self._closed.items()
        }
        return unclear_tasks(told, self._inputs)
