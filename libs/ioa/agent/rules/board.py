"""What has become of the plan: derived afresh from the group's record each time, so that any member can go on at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ioa.agent.rules.casting import plan_of, substitute
from ioa.group.state import ClosedTask, OpenTask, PlannedTask
from ioa.ports.brain import GroupView, TaskRecord
from ioa.protocol.ids import MAX_ID_CHARS, AgentId, TaskId
from ioa.protocol.messages import InformTaskResult, TaskOutcome


class Standing(StrEnum):
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
        return self in (Standing.DONE, Standing.FAILED, Standing.SKIPPED)


@dataclass(frozen=True)
class Job:
    """A planned task and what has become of it.

    Attributes:
        attempt: The attempt that counts: the open one, the one that succeeded, else the last.
        next_id: The id under which it is given out next, if it is ready.
        performer: Who gets it then.
    """

    plan: PlannedTask
    standing: Standing
    attempt: TaskId | None = None
    next_id: TaskId | None = None
    performer: AgentId | None = None


def read_board(view: GroupView) -> tuple[Job, ...]:
    """Compare the plan with the tasks given out so far, in the plan's order."""
    jobs: dict[TaskId, Job] = {}
    for planned in plan_of(view.charter):
        jobs[planned.task_id] = _job(planned, view, jobs)
    return tuple(jobs.values())


def is_led_by_others(view: GroupView) -> bool:
    """Whether somebody gave out tasks that are not in the plan, so that the plan is no longer what the group does."""
    known = {task_id for planned in plan_of(view.charter) for task_id in (planned.task_id, second_attempt(planned.task_id))}
    return any(task.task_id not in known for task in view.state.tasks)


def second_attempt(task_id: TaskId) -> TaskId:
    """The id of a task's second attempt."""
    return TaskId(f"{task_id[: MAX_ID_CHARS - 2]}-2")


def record_of(job: Job, view: GroupView) -> TaskRecord | None:
    """All that is known of the attempt that counts."""
    return view.task(job.attempt) if job.attempt is not None else None


def _job(planned: PlannedTask, view: GroupView, jobs: dict[TaskId, Job]) -> Job:
    attempts = [task for task_id in (planned.task_id, second_attempt(planned.task_id)) if (task := view.state.task(task_id))]
    if attempts:
        return _attempted(planned, attempts, view)
    needed = [jobs[use].standing for use in planned.uses if use in jobs]
    if any(not standing.is_settled for standing in needed):
        return Job(planned, Standing.BLOCKED)
    if needed and Standing.DONE not in needed:
        return Job(planned, Standing.SKIPPED)
    living = planned.assignee in view.state.living()
    performer = planned.assignee if living else substitute(planned, view.charter, view.state, instead_of=planned.assignee)
    if performer is None:
        return Job(planned, Standing.FAILED)
    return Job(planned, Standing.READY, next_id=planned.task_id, performer=performer)


def _attempted(planned: PlannedTask, attempts: list[OpenTask | ClosedTask], view: GroupView) -> Job:
    for task in attempts:
        if isinstance(task, OpenTask):
            return Job(planned, Standing.OPEN, task.task_id)
        if task.outcome is TaskOutcome.DONE:
            return Job(planned, Standing.DONE, task.task_id)
    last = attempts[-1]
    if len(attempts) == 1 and _was_lost(last, view):
        performer = substitute(planned, view.charter, view.state, instead_of=last.assignee)
        if performer is not None:
            return Job(planned, Standing.READY, last.task_id, second_attempt(planned.task_id), performer)
    return Job(planned, Standing.FAILED, last.task_id)


def _was_lost(task: OpenTask | ClosedTask, view: GroupView) -> bool:
    """Whether the assignee never said how the task ended, so that another one may do better."""
    if not isinstance(task, ClosedTask) or task.outcome is not TaskOutcome.FAILED or task.subgroup is not None:
        return False
    reports = (message.payload for message in view.messages if isinstance(message.payload, InformTaskResult))
    return all(report.task_id != task.task_id for report in reports)
