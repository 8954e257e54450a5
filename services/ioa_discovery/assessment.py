"""Outcomes of tasks: the owner of an ended group reports it, and the group's log contains the outcomes.

Only routers and group setup write the log, so the owner cannot falsify an outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ioa.adapters.nats.stores.outcome_store import NatsOutcomes
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.errors import ConflictError, ForbiddenError
from ioa.group.events import Entry, Said
from ioa.group.requests import no_group
from ioa.group.state import ClosedTask, GroupState
from ioa.ports.group_log import GroupLog
from ioa.ports.registry_view import RegistryView
from ioa.protocol.agents.outcomes import MAX_RECORDED_NEED_CHARS, Outcome, ReportOutcomes, name_of_task
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import AsyncTaskAssignment, InformTaskResult, SyncTaskAssignment, TaskOutcome
from ioa.protocol.registry import Acknowledged
from ioa_discovery.experience import Experience

_MAX_ENTRIES = 1_000
"""Maximum entries that are read of a log. Later tasks are ignored."""
_PAGE_ENTRIES, _PAGE_BYTES = 64, 500_000


class Assessor:
    """Answer the requests of `discovery.report`."""

    def __init__(
        self,
        log: GroupLog,
        view: RegistryView,
        outcomes: NatsOutcomes,
        sessions: NatsSessions,
        experience: Experience,
    ) -> None:
        self._log = log
        self._view = view
        self._outcomes = outcomes
        self._sessions = sessions
        self._experience = experience

    async def report(self, request: ReportOutcomes) -> Acknowledged:
        """Store the outcomes of an ended group's tasks. Idempotent. Tasks of the owner, and of its pool, are ignored.

        Raises:
            NotFoundError: There is no such group, or the caller was no member.
            ForbiddenError: Another member owned it.
            ConflictError: It has not ended.
            SupersededError: Another process has taken the owner's id over.
        """
        await self._sessions.check(request.agent_id, request.session)
        head = await self._log.last(request.comm_id)
        if head is None or not head.entry.state.is_member(request.agent_id):
            raise no_group(request.comm_id)
        state = head.entry.state
        if state.owner != request.agent_id:
            raise ForbiddenError(f"{request.agent_id} may not report group {request.comm_id}: {state.owner} owned it.")
        if not state.phase.is_terminal:
            raise ConflictError(f"The group {request.comm_id} has not ended.", hint="Report its tasks when it has.")
        for outcome in (await self._read_log(state)).outcomes(self._view):
            if not self._experience.has(outcome):
                await self._outcomes.put(outcome, key=outcome.task)
        return Acknowledged()

    async def _read_log(self, state: GroupState) -> _EndedTasks:
        tasks, entries, after = _EndedTasks(state), 0, 0
        while entries < _MAX_ENTRIES:
            limit = min(_PAGE_ENTRIES, _MAX_ENTRIES - entries)
            page = await self._log.read(state.comm_id, after=after, limit=limit, max_bytes=_PAGE_BYTES)
            if not page:
                break
            for stored in page:
                tasks.read(stored.entry)
            entries, after = entries + len(page), page[-1].seq
        return tasks


class _EndedTasks:
    """The ended tasks of a group, collected entry by entry from the first one."""

    def __init__(self, group: GroupState) -> None:
        self._group = group
        self._needs: dict[TaskId, str] = {}
        self._closed: dict[TaskId, tuple[ClosedTask, datetime]] = {}
        self._unfit: set[TaskId] = set()

    def read(self, entry: Entry) -> None:
        """Read the next entry."""
        match entry.event.message.payload if isinstance(entry.event, Said) else None:
            case SyncTaskAssignment(tasks=specs) | AsyncTaskAssignment(tasks=specs):
                self._needs |= {one.task_id: one.task_abstract or one.task_desc for one in specs}
            case InformTaskResult(outcome=TaskOutcome.FAILED, declined=True, task_id=task_id):
                self._unfit.add(task_id)
            case _:
                pass
        for task in entry.state.tasks:
            if isinstance(task, ClosedTask):
                _, at = self._closed.get(task.task_id, (task, entry.event.at))
                self._closed[task.task_id] = task, at

    def outcomes(self, view: RegistryView) -> Iterator[Outcome]:
        """Yield the outcomes in the order in which the tasks ended. A rejected task counts as not done.

        Tasks are left out if their assignee is the owner of the group, belongs to the owner's pool, or declined the task; if they
        were cancelled; or if not all members know them, because a record would reveal them.
        """
        owner = view.card(self._group.owner)
        for task_id, (task, at) in self._closed.items():
            if (
                task.outcome is TaskOutcome.CANCELLED
                or task.earshot
                or task_id in self._unfit
                or task.assignee == self._group.owner
            ):
                continue
            record = view.card(task.assignee)
            if record is None or (owner is not None and record.card.pool == owner.card.pool):
                continue
            yield Outcome(
                pool=record.card.pool,
                need=self._needs.get(task_id, "")[:MAX_RECORDED_NEED_CHARS],
                done=task.outcome is TaskOutcome.DONE,
                at=at,
                task=name_of_task(self._group.comm_id, task_id),
            )
