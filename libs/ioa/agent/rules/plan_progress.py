"""What has become of the plan: derived afresh from the group's record each time, so that any member can go on at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ioa.agent.rules.assignment import plan_of, replica_of, substitute
from ioa.group.state import PlannedTask
from ioa.ports.brain import GroupView, TaskRecord
from ioa.protocol.ids import MAX_ID_CHARS, AgentId, TaskId, task_id_of_turn, turn_of_task_id
from ioa.protocol.levels import TASKS_ARE_FOLDED
from ioa.protocol.messages import TaskOutcome

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
        performer: Who gets it next, if it is ready.
    """

    plan: PlannedTask
    standing: PlanStatus
    attempt: TaskId | None = None
    attempts: tuple[TaskId, ...] = ()
    performer: AgentId | None = None


def read_progress(view: GroupView) -> tuple[Job, ...]:
    """Compare the plan with the tasks given out so far, in the plan's order."""
    jobs: dict[TaskId, Job] = {}
    for planned in plan_of(view.charter):
        jobs[planned.task_id] = _job(planned, view, jobs)
    return tuple(jobs.values())


def is_led_by_others(view: GroupView) -> bool:
    """Whether somebody gave out tasks that are not in the plan, so that the plan is no longer what the group does."""
    plan, level = plan_of(view.charter), view.charter.limits.level
    return not all(any(_is_attempt(task.spec.task_id, planned, level) for planned in plan) for task in view.tasks)


def record_of(job: Job, view: GroupView) -> TaskRecord | None:
    """All that is known of the attempt that counts."""
    return view.task(job.attempt) if job.attempt is not None else None


def _job(planned: PlannedTask, view: GroupView, jobs: dict[TaskId, Job]) -> Job:
    level = view.charter.limits.level
    attempts = [task for task in view.tasks if _is_attempt(task.spec.task_id, planned, level) and not _came_to_nothing(task)]
    if attempts:
        return _attempted(planned, attempts, view)
    needed = [jobs[use].standing for use in planned.uses if use in jobs]
    if any(not standing.is_settled for standing in needed):
        return Job(planned, PlanStatus.BLOCKED)
    if needed and PlanStatus.DONE not in needed:
        return Job(planned, PlanStatus.SKIPPED)
    performer = performer_of(planned, view)
    return Job(planned, PlanStatus.READY, performer=performer) if performer else Job(planned, PlanStatus.FAILED)


def _came_to_nothing(task: TaskRecord) -> bool:
    """Whether a task was cancelled before it began, since one that it waited for was not done: it may be given out without that."""
    return task.outcome is TaskOutcome.CANCELLED and not task.started


def performer_of(planned: PlannedTask, view: GroupView) -> AgentId | None:
    """Who does a task: the member it was planned for, even if that is lost only just now, rather than one that may do it worse."""
    if planned.assignee in view.state.living():
        return planned.assignee
    replica = replica_of(planned.assignee, view.charter, view.state)
    if replica is not None or planned.assignee in view.reachable:
        return replica or planned.assignee
    return substitute(planned, view.charter, view.state, instead_of=planned.assignee)


def _attempted(planned: PlannedTask, attempts: Sequence[TaskRecord], view: GroupView) -> Job:
    ids = tuple(task.spec.task_id for task in attempts)
    for task in attempts:
        if task.outcome is None:
            return Job(planned, PlanStatus.OPEN, task.spec.task_id, ids)
        if task.outcome is TaskOutcome.DONE:
            return Job(planned, PlanStatus.DONE, task.spec.task_id, ids)
    performer = _after_silence(planned, attempts, view) or _next_candidate(planned, attempts, view)
    return Job(planned, PlanStatus.READY if performer else PlanStatus.FAILED, ids[-1], ids, performer)


def _after_silence(planned: PlannedTask, attempts: Sequence[TaskRecord], view: GroupView) -> AgentId | None:
    """Who does what its assignee fell silent on: one that does it as well, or the same again if it is there."""
    if not attempts[-1].given_up or sum(task.given_up for task in attempts) >= MAX_SILENT:
        return None
    silent = attempts[-1].spec.assignee
    return substitute(planned, view.charter, view.state, instead_of=silent) or (silent if silent in view.reachable else None)


def _next_candidate(planned: PlannedTask, attempts: Sequence[TaskRecord], view: GroupView) -> AgentId | None:
    """Return the best of those who fit the task and were not given it yet."""
    if attempts[-1].outcome not in (TaskOutcome.FAILED, TaskOutcome.REJECTED):
        return None
    tried = {task.spec.assignee for task in attempts}
    return next((other for other in planned.others if other not in tried and other in view.reachable), None)


def _is_attempt(task_id: TaskId, planned: PlannedTask, level: int) -> bool:
    """Whether a task was given out for a planned one. In groups of level 0 the planned id itself served, and `-2` behind it."""
    turn = turn_of_task_id(task_id)
    if turn is not None and task_id == task_id_of_turn(turn, planned.task_id):
        return True
    return level < TASKS_ARE_FOLDED and task_id in (planned.task_id, f"{planned.task_id[: MAX_ID_CHARS - 2]}-2")
