"""Learning how tasks went: the owner of a group tells when it has ended, and the group's log says whether that is so.

What counts, who did it and whether it was done, is read off the log's last entry, which only routers and group setup can write. The
owner adds what the log's state does not hold: what was asked for, how long it took, and what it cost.

All that one group says of a pool is one outcome. So nobody drives out what others said of it, of which only so much is remembered,
by giving it many tasks that come to nothing: each outcome costs a goal, and those of one owner's pool together are worth no more
than so many of different ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prometheus_client import Counter

from ioa.errors import ConflictError, ForbiddenError, NotFoundError
from ioa.group.state import ClosedTask, GroupState
from ioa.ports.clock import Clock
from ioa.ports.group_log import GroupLog
from ioa.ports.outcome_store import OutcomeStore
from ioa.ports.registry_store import RegistryView, Sessions
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.outcomes import Outcome, ReportOutcomes, TaskReport, name_of_pool
from ioa.protocol.registry import Acknowledged

outcomes_kept = Counter(
    "ioa_discovery_outcomes_total",
    "Outcomes that owners of groups told and the log confirmed, one of a group for each pool; told again it counts again",
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
        """Keep how the tasks of an ended group went, one outcome for each pool; reporting them again changes nothing.

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
        by_pool: defaultdict[PoolId, list[_Confirmed]] = defaultdict(list)
        for confirmed in _confirmed(state, request.tasks):
            record = self._view.card(confirmed.assignee)
            if record is not None and (owner is None or record.card.pool != owner.card.pool):
                by_pool[record.card.pool].append(confirmed)
        for pool, tasks in by_pool.items():
            told = _most_like(tasks)
            name = name_of_pool(request.comm_id, pool)
            outcome = Outcome(
                pool=pool,
                agent_id=told.assignee,
                need=told.report.need,
                done=told.ended is TaskOutcome.DONE,
                at=min(told.report.at, self._clock.now()),
                seconds=told.report.seconds,
                usage=told.report.usage,
                task=name,
                owner=PoolId(state.owner) if owner is None else owner.card.pool,
            )
            await self._outcomes.put(outcome, key=name)
            _counts[told.ended].inc()
        return Acknowledged()


class _Confirmed(NamedTuple):
    """A report on a task that the log bears out: who closed it, and how."""

    report: TaskReport
    assignee: AgentId
    ended: TaskOutcome


def _most_like(tasks: Sequence[_Confirmed]) -> _Confirmed:
    """Return the task that stands for all: it ended as most did, failed if as many failed, and took the median time of those."""
    done = [one for one in tasks if one.ended is TaskOutcome.DONE]
    failed = [one for one in tasks if one.ended is not TaskOutcome.DONE]
    alike = sorted(done if len(done) > len(failed) else failed, key=lambda one: one.report.seconds)
    return alike[len(alike) // 2]


def _confirmed(state: GroupState, reports: tuple[TaskReport, ...]) -> Iterator[_Confirmed]:
    """Return the reports on tasks of the group that others closed, with who closed them how.

    Of tasks that have left the state only numbers are known: so many reports on an assignee's are believed, and no more. What was
    rejected counts as failed.
    """
    left = defaultdict[tuple[AgentId, TaskOutcome], int](int)
    for one in state.folded:
        left[one.assignee, TaskOutcome.DONE] += one.done
        left[one.assignee, TaskOutcome.FAILED] += one.failed + one.rejected
    for report in reports:
        task = state.task(report.task_id)
        if isinstance(task, ClosedTask):
            if task.outcome is not TaskOutcome.CANCELLED and task.assignee != state.owner:
                ended = TaskOutcome.DONE if task.outcome is TaskOutcome.DONE else TaskOutcome.FAILED
                yield _Confirmed(report, task.assignee, ended)
        elif report.assignee is not None and report.outcome is not None and report.assignee != state.owner:
            told = report.assignee, report.outcome
            if state.is_folded(report.task_id) and left[told] > 0:
                left[told] -= 1
                yield _Confirmed(report, *told)
