"""Deadlines of a group: when a timer checks it, and what ends then: turns, waits, leases of tasks, and questions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ioa.group import floor
from ioa.group.events import TimerFired
from ioa.group.policy import deciding
from ioa.group.policy.casting import current_scene
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.speaking import resume, silence
from ioa.group.state import Asking, Concluding, Discussing, Ended, Gathering, GroupState, OpenTask, Task, Waiting
from ioa.group.tasks import each_open
from ioa.protocol.goals import Reason
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.policy import Policy

OUTAGE = timedelta(seconds=30)
"""Minimum delay of a timer that shows an outage, in which no assignee could report."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def next_deadline(state: GroupState) -> datetime | None:
    """Return the time at which a timer must check the group; None after its end."""
    if isinstance(state.stage, Ended):
        return None
    times = [state.limits.deadline]
    for task in state.open_tasks:
        times += (task.lease_until,) if task.deadline is None else (task.lease_until, task.deadline)
        times += [] if task.question is None else [task.question.until]
    if state.stage.until is not None:
        times.append(state.stage.until)
    return min(times)


def time_out(state: GroupState, fired: TimerFired, policy: Policy | None) -> GroupState:
    """End the group at its deadline, expire leases and questions, and go on without members whose time is up.

    Raises:
        IllegalEventError: No deadline has passed.
    """
    at = fired.at
    if at >= state.limits.deadline:
        return floor.end(state, Reason.DEADLINE, "The deadline passed before the goal was reached.", at)
    after = _expire_tasks(state, fired)
    match after.stage:
        case Gathering(seats=seats) if silent := [seat.agent_id for seat in seats if seat.until <= at]:
            return silence(after, silent, at, policy)
        case Discussing(until=until) | Concluding(until=until) if until <= at:
            return silence(after, after.floor, at, policy)
        case Asking(until=until) if until <= at and policy is not None:
            return deciding.decide(current_scene(policy, after, at))
        case Waiting(waiter=waiter, until=until) if until is not None and until <= at:
            return resume(after, waiter, at, policy)
    if after is state:
        raise IllegalEventError(RejectionCode.NOTHING_DUE, "No deadline has passed.")
    return after


def _expire_tasks(state: GroupState, fired: TimerFired) -> GroupState:
    """Renew leases by reports, and expire deadlines, leases and questions of open tasks.

    A task whose deadline has passed fails. A lease that expires makes its task suspect; when it expires again the task fails,
    unless an outage hid the reports. The default of a question counts after its time.
    """
    at, heard = fired.at, {one.task_id: one.at for one in fired.heard}

    def expired(task: OpenTask) -> Task:
        if task.task_id in heard:
            task = _renew_after_report(state, task, min(heard[task.task_id], at))
        if task.deadline is not None and task.deadline <= at:
            return task.closed(TaskOutcome.FAILED, f"{task.assignee} was not done by the task's deadline")
        changed: dict[str, object] = {}
        if task.question is not None and task.question.until <= at:
            changed["question"] = None
        if task.lease_until <= at:
            if task.suspect and at - task.lease_until <= OUTAGE:
                return task.closed(TaskOutcome.FAILED, f"{task.assignee} reported nothing within its lease")
            changed |= {"suspect": True, "lease_until": at + state.lease_of(task.assignee)}
        return task.model_copy(update=changed) if changed else task

    return each_open(state, expired)


def _renew_after_report(state: GroupState, task: OpenTask, at: datetime) -> OpenTask:
    """Renew the lease of a task with reported progress. Leases expire on a grid, so that many expire at one time."""
    lease = state.lease_of(task.assignee)
    grid = lease / 2 or timedelta.resolution  # the half of a microsecond is nothing
    until = _EPOCH - (_EPOCH - at - lease) // grid * grid
    return task.model_copy(update={"lease_until": until, "suspect": False}) if until > task.lease_until else task
