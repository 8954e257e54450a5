"""What has become of the plan: derived afresh from the group's record each time, so that any member can go on at any moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ioa.agent.rules.assignment import StandIns, plan_of
from ioa.group.state import PlannedTask
from ioa.ports.brain import GroupView, TaskRecord
from ioa.protocol.ids import (
    AgentId,
    TaskId,
    name_in_long_ids,
    name_of_task_id,
    task_id_of_turn,
    turn_of_task_id,
)
from ioa.protocol.messages import MAX_TASKS_PER_ASSIGNMENT, TaskOutcome

MAX_SILENT = 2
"""How often a task is given out whose assignees fall silent; who says that it failed is no silent one."""


class PlanStatus(StrEnum):
    """Where a planned task stands."""

    BLOCKED = "blocked"
    READY = "ready"
    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def is_settled(self) -> bool:
        """Whether nothing more comes of it."""
        return self in (PlanStatus.DONE, PlanStatus.FAILED, PlanStatus.SKIPPED)


@dataclass(frozen=True)
class Job:
    """A planned task and what has become of it.

    Attributes:
        attempt: The attempt that counts: the open one, the one that succeeded, else the last.
        attempts: All of them, in order.
        performer: Who gets it next, if it is ready. Nobody is looked for behind as many as can be given out at once.
    """

    plan: PlannedTask
    standing: PlanStatus
    attempt: TaskRecord | None = None
    attempts: tuple[TaskRecord, ...] = ()
    performer: AgentId | None = None


class PlanProgress:
    """What has become of the plan in a view.

    A plan of thousands of tasks, of which hundreds were given out, is told from these by one look at each.

    Attributes:
        jobs: The planned tasks, in the plan's order.
        is_led_by_others: Somebody gave out tasks that are not in the plan, so that the plan is no longer what the group does.
    """

    def __init__(self, view: GroupView) -> None:
        self._reachable = frozenset(view.reachable)
        self._stand_ins = StandIns(view.charter, view.state)
        plan = {planned.task_id: planned for planned in plan_of(view.charter)}
        attempts = _attempts(plan, view)
        self.is_led_by_others = sum(map(len, attempts.values())) < len(view.tasks)
        jobs: dict[TaskId, Job] = {}
        ready = 0
        for planned in plan.values():
            known = [task for task in attempts.get(planned.task_id, ()) if not _came_to_nothing(task)]
            job = self._attempted(planned, known) if known else self._untried(planned, jobs, ready < MAX_TASKS_PER_ASSIGNMENT)
            jobs[planned.task_id] = job
            ready += job.standing is PlanStatus.READY
        self.jobs = tuple(jobs.values())

    def performer_of(self, planned: PlannedTask) -> AgentId | None:
        """Who does a task: the member it was planned for, even if that is lost only now, rather than one that may do it worse."""
        if planned.assignee in self._stand_ins.living:
            return planned.assignee
        replica = self._stand_ins.replica_of(planned.assignee)
        if replica is not None or planned.assignee in self._reachable:
            return replica or planned.assignee
        return self._stand_ins.substitute(planned, instead_of=planned.assignee)

    def _untried(self, planned: PlannedTask, jobs: Mapping[TaskId, Job], is_wanted: bool) -> Job:
        needed = [jobs[use].standing for use in planned.uses if use in jobs]
        if any(not standing.is_settled for standing in needed):
            return Job(planned, PlanStatus.BLOCKED)
        if needed and PlanStatus.DONE not in needed:
            return Job(planned, PlanStatus.SKIPPED)
        performer = self.performer_of(planned) if is_wanted else None
        return Job(planned, PlanStatus.READY if performer or not is_wanted else PlanStatus.FAILED, performer=performer)

    def _attempted(self, planned: PlannedTask, attempts: Sequence[TaskRecord]) -> Job:
        for task in attempts:
            if task.outcome is None:
                return Job(planned, PlanStatus.OPEN, task, tuple(attempts))
            if task.outcome is TaskOutcome.DONE:
                return Job(planned, PlanStatus.DONE, task, tuple(attempts))
        performer = self._after_silence(planned, attempts) or self._next_candidate(planned, attempts)
        standing = PlanStatus.READY if performer else PlanStatus.FAILED
        return Job(planned, standing, attempts[-1], tuple(attempts), performer)

    def _after_silence(self, planned: PlannedTask, attempts: Sequence[TaskRecord]) -> AgentId | None:
        """Who does what its assignee fell silent on: a replica, who fits next, who speaks of such things, or the same again."""
        if not attempts[-1].given_up or sum(task.given_up for task in attempts) >= MAX_SILENT:
            return None
        silent = attempts[-1].spec.assignee
        return (
            self._stand_ins.replica_of(silent)
            or self._next_candidate(planned, attempts)
            or self._stand_ins.substitute(planned, instead_of=silent)
            or (silent if silent in self._reachable else None)
        )

    def _next_candidate(self, planned: PlannedTask, attempts: Sequence[TaskRecord]) -> AgentId | None:
        """Return the best of those who fit the task and were not given it yet."""
        if attempts[-1].outcome not in (TaskOutcome.FAILED, TaskOutcome.REJECTED):
            return None
        tried = {task.spec.assignee for task in attempts}
        return next((other for other in planned.others if other not in tried and other in self._reachable), None)


def _came_to_nothing(task: TaskRecord) -> bool:
    """Whether a task was cancelled before it began, since one that it waited for was not done: it may be given out without that."""
    return task.outcome is TaskOutcome.CANCELLED and not task.started


def _attempts(plan: Iterable[TaskId], view: GroupView) -> Mapping[TaskId, Sequence[TaskRecord]]:
    """Find by their ids what was given out for each planned task."""
    itself = {task_id: task_id for task_id in plan}
    named = {name_in_long_ids(task_id): task_id for task_id in itself} | itself
    found = defaultdict[TaskId, list[TaskRecord]](list)
    for task in view.tasks:
        task_id = task.spec.task_id
        turn, planned = turn_of_task_id(task_id), named.get(name_of_task_id(task_id))
        if turn is not None and planned is not None and task_id == task_id_of_turn(turn, planned):
            found[planned].append(task)
    return found
