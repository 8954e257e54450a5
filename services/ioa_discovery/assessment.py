"""Outcomes of tasks: the owner of an ended group reports it, and the group's log contains the outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import Counter

from ioa.adapters.nats.stores.outcomes import NatsOutcomes
from ioa.adapters.nats.stores.sessions import NatsSessions
from ioa.errors import ConflictError, ForbiddenError
from ioa.group.requests import no_group
from ioa.group.state import GroupState
from ioa.ports.clock import Clock
from ioa.ports.group_log import GroupLog
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import CommId
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.outcomes import Outcome, ReportOutcomes, name_of_task
from ioa.protocol.registry import Acknowledged
from ioa_discovery.ended_tasks import EndedTask, EndedTasks
from ioa_discovery.experience import Experience

_MAX_ENTRIES = 1_000
"""Maximum entries that are read of a log. Later tasks are ignored."""
_PAGE_ENTRIES, _PAGE_BYTES = 64, 500_000

outcomes_kept = Counter(
    "ioa_discovery_outcomes_total", "Outcomes of tasks that were read from the logs of ended groups and stored", ["outcome"]
)
_counts = {done: outcomes_kept.labels(TaskOutcome.DONE if done else TaskOutcome.FAILED) for done in (True, False)}


class Assessor:
    """Answer the requests of `discovery.report`."""

    def __init__(
        self,
        log: GroupLog,
        view: RegistryView,
        outcomes: NatsOutcomes,
        clock: Clock,
        sessions: NatsSessions,
        experience: Experience,
    ) -> None:
        self._log = log
        self._view = view
        self._outcomes = outcomes
        self._clock = clock
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
        await self._store_outcomes(state)
        return Acknowledged()

    async def _store_outcomes(self, state: GroupState) -> None:
        owner = self._view.card(state.owner)
        for task in await self._ended_tasks(state.comm_id):
            record = self._view.card(task.assignee)
            if task.assignee == state.owner or record is None or (owner is not None and record.card.pool == owner.card.pool):
                continue
            outcome = Outcome(
                pool=record.card.pool,
                agent_id=task.assignee,
                need=task.need,
                done=task.done,
                at=min(task.at, self._clock.now()),
                seconds=task.took.total_seconds(),
                usage=task.usage,
                task=name_of_task(state.comm_id, task.task_id),
            )
            if not self._experience.has(outcome):
                await self._outcomes.put(outcome, key=outcome.task)
                _counts[outcome.done].inc()

    async def _ended_tasks(self, comm_id: CommId) -> Sequence[EndedTask]:
        """Read the ended tasks of a log, page by page."""
        tasks, entries, after = EndedTasks(), 0, 0
        while entries < _MAX_ENTRIES:
            limit = min(_PAGE_ENTRIES, _MAX_ENTRIES - entries)
            page = await self._log.read(comm_id, after=after, limit=limit, max_bytes=_PAGE_BYTES)
            if not page:
                break
            tasks.apply(one.entry for one in page)
            entries, after = entries + len(page), page[-1].seq
        return list(tasks)
