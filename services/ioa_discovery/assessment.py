"""Learning how tasks went: the owner of a group tells when it has ended, and the group's log says whether that is so.

What counts, who did it and whether it was done, is read off the log's last entry, which only routers and group setup can write. The
owner adds what the log's state does not hold: what was asked for, how long it took, and what it cost.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Counter

from ioa.errors import ConflictError, ForbiddenError, NotFoundError
from ioa.group.state import ClosedTask, GroupState
from ioa.ports.clock import Clock
from ioa.ports.group_log import GroupLog
from ioa.ports.outcome_store import OutcomeStore
from ioa.ports.registry_store import RegistryView, Sessions
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.outcomes import Outcome, ReportOutcomes, TaskReport, name_of_task
from ioa.protocol.registry import Acknowledged

outcomes_kept = Counter(
    "ioa_discovery_outcomes_total",
    "Outcomes of tasks that owners of groups told and the log confirmed; one that is told again counts again",
    ["outcome"],
)
_counts = {outcome: outcomes_kept.labels(outcome.value) for outcome in (TaskOutcome.DONE, TaskOutcome.FAILED)}


class Assessor:
    """Answer the requests of `ioa.v1.discovery.report`."""

    def __init__(self, log: GroupLog, view: RegistryView, outcomes: OutcomeStore, clock: Clock, sessions: Sessions) -> None:
        self._log = log
        self._view = view
        self._outcomes = outcomes
        self._clock = clock
        self._sessions = sessions

    async def report(self, request: ReportOutcomes) -> Acknowledged:
        """Keep how the tasks of an ended group went; reporting them again changes nothing.

        A task that was cancelled says nothing of its assignee, one that was rejected is not done, and what owners did themselves is
        left out, as is what others of their pool did: nobody praises himself.

        Raises:
            NotFoundError: There is no such group.
            ForbiddenError: Another agent owned it.
            ConflictError: It has not ended.
            SupersededError: Another process has taken the owner's id over.
        """
        await self._sessions.check(request.agent_id, request.session)
        head = await self._log.last(request.comm_id)
        if head is None:
            raise NotFoundError(f"There is no group {request.comm_id}.")
        state = head.entry.state
        if state.owner != request.agent_id:
            raise ForbiddenError(f"{request.agent_id} may not tell how group {request.comm_id} went: {state.owner} owned it.")
        if not state.phase.is_terminal:
            raise ConflictError(f"The group {request.comm_id} has not ended.", hint="Report its tasks when it has.")
        owner = self._view.card(state.owner)
        for report, assignee, ended in _confirmed(state, request.tasks):
            record = self._view.card(assignee)
            if record is not None and (owner is None or record.card.pool != owner.card.pool):
                task_name = name_of_task(request.comm_id, report.task_id)
                outcome = Outcome(
                    pool=record.card.pool,
                    agent_id=assignee,
                    need=report.need,
                    done=ended is TaskOutcome.DONE,
                    at=min(report.at, self._clock.now()),
                    seconds=report.seconds,
                    usage=report.usage,
                    task=task_name,
                )
                await self._outcomes.put(outcome, key=task_name)
                _counts[ended].inc()
        return Acknowledged()


def _confirmed(state: GroupState, reports: tuple[TaskReport, ...]) -> Iterator[tuple[TaskReport, AgentId, TaskOutcome]]:
    """Return the reports on tasks of the group that others closed, with who closed them how.

    Of tasks that have left the state only numbers are known: so many reports on an assignee's are believed, and no more. What was
    rejected counts as failed.
    """
    left = {(one.assignee, TaskOutcome.DONE): one.done for one in state.folded}
    left |= {(one.assignee, TaskOutcome.FAILED): one.failed + one.rejected for one in state.folded}
    for report in reports:
        task = state.task(report.task_id)
        if isinstance(task, ClosedTask):
            if task.outcome is not TaskOutcome.CANCELLED and task.assignee != state.owner:
                yield report, task.assignee, TaskOutcome.DONE if task.outcome is TaskOutcome.DONE else TaskOutcome.FAILED
        elif report.assignee is not None and report.outcome is not None and report.assignee != state.owner:
            told = report.assignee, report.outcome
            if state.is_folded(report.task_id) and left.get(told, 0) > 0:
                left[told] -= 1
                yield report, *told
