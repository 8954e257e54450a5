"""Tasks of a group: given out once, closed once, and never left open without a lease that will run out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ioa.group import budget, floor, memory
from ioa.group.events import Said, SubgroupClosed, SubgroupOpened
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import Assigned, ClosedTask, GroupState, Handing, OpenTask, TaskMode
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    InformTaskProgress,
    InformTaskResult,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)

OUTAGE = timedelta(seconds=30)
"""A deadline noticed later than this was held up by an outage, in which no assignee could report either."""


def assign(state: GroupState, said: Said) -> GroupState:
    """Open the tasks of an assignment and suspend the floor until their assignees are done, or have answered."""
    payload, sender = said.message.payload, said.message.header.sender
    assert isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment)
    for spec in payload.tasks:
        _check_spec(state, spec)
    _check_news(state, payload.tasks)
    mode = TaskMode.SYNC if isinstance(payload, SyncTaskAssignment) else TaskMode.ASYNC
    opened = tuple(
        OpenTask(
            task_id=spec.task_id,
            assignee=spec.assignee,
            assigner=sender,
            mode=mode,
            turn=state.turn,
            lease_until=said.at + state.limits.task_lease,
            deadline=min(said.at + spec.timeout, state.limits.deadline) if spec.timeout is not None else None,
        )
        for spec in payload.tasks
    )
    waiting = tuple(task.task_id for task in opened)
    stage: Assigned | Handing
    if mode is TaskMode.SYNC:
        stage = Assigned(assigner=sender, waiting=waiting)
    else:
        stage = Handing(assigner=sender, waiting=waiting, until=said.at + state.limits.floor_timeout)
    after = floor.take_turn(state, stage=stage, tasks=(*state.tasks, *opened))
    return memory.after_assignment(after, sender, payload.tasks)


def progress(state: GroupState, said: Said) -> GroupState:
    """Acknowledge a task and renew its lease."""
    payload = said.message.payload
    assert isinstance(payload, InformTaskProgress)
    task = _reported_task(state, said, payload.task_id)
    if payload.number <= task.progress:
        raise IllegalEventError(
            RejectionCode.STALE_PROGRESS, f"Report {payload.number} of task {task.task_id} came after report {task.progress}."
        )
    return _replace(state, _renewed(state, task, said.at).model_copy(update={"progress": payload.number}))


def result(state: GroupState, said: Said) -> GroupState:
    """Close a task with what its assignee reports."""
    payload = said.message.payload
    assert isinstance(payload, InformTaskResult)
    task = _reported_task(state, said, payload.task_id)
    after = _replace(state, task.closed(payload.outcome))
    if payload.outcome is not TaskOutcome.DONE:
        return after
    return memory.after_result(after, payload.task_id, payload.task_conclusion)


def open_subgroup(state: GroupState, opened: SubgroupOpened) -> GroupState:
    """Record that an open task is served by a nested team."""
    task = _open_task(state, opened.task_id)
    if task.assignee != opened.by:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"Task {task.task_id} belongs to {task.assignee}.")
    if task.subgroup is not None:
        raise IllegalEventError(RejectionCode.SUBGROUP_EXISTS, f"Task {task.task_id} has a nested team: {task.subgroup}.")
    if state.depth + 1 > state.limits.max_depth:
        raise IllegalEventError(RejectionCode.TOO_DEEP, f"Teams may nest {state.limits.max_depth} deep, and this is the limit.")
    lent = budget.lend(state, task, opened.subgroup, opened.at)
    return _replace(lent, _renewed(state, task, opened.at).model_copy(update={"subgroup": opened.subgroup}))


def close_subgroup(state: GroupState, closed: SubgroupClosed) -> GroupState:
    """Close a task with the conclusion of the nested team that served it; if it is closed already, only count the team's usage."""
    task = state.task(closed.task_id)
    if task is not None and task.subgroup != closed.subgroup:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"Task {task.task_id} is not served by {closed.subgroup}.")
    if isinstance(task, ClosedTask) and state.loan(closed.subgroup) is not None:
        return budget.repay(state, closed)
    task, state = _open_task(state, closed.task_id), budget.repay(state, closed)
    if closed.reason is not Reason.CONCLUDED:
        return _replace(state, task.closed(TaskOutcome.FAILED, closed.reason))
    return memory.after_result(_replace(state, task.closed(TaskOutcome.DONE)), closed.task_id, closed.content)


def expire_deadlines(state: GroupState, at: datetime) -> GroupState:
    """Fail the tasks whose time is up, whatever progress they report."""
    for task in state.open_tasks:
        if task.deadline is not None and task.deadline <= at:
            state = _replace(state, task.closed(TaskOutcome.FAILED, f"{task.assignee} was not done by the task's deadline"))
    return state


def expire_leases(state: GroupState, at: datetime) -> GroupState:
    """Suspect the tasks whose lease has run out; fail those that were suspect already, unless an outage hid their reports."""
    for task in state.open_tasks:
        if task.lease_until > at:
            continue
        if task.suspect and at - task.lease_until <= OUTAGE:
            state = _replace(state, task.closed(TaskOutcome.FAILED, f"{task.assignee} reported nothing within its lease"))
        else:
            until = at + state.limits.task_lease
            state = _replace(state, task.model_copy(update={"suspect": True, "lease_until": until}))
    return state


def suspect(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Fail the open tasks of a lost member when their lease runs out.

    A lease that ran out unnoticed, while nothing of the system was up, is no evidence: it starts anew.
    """
    for task in state.open_tasks:
        if task.assignee == agent_id:
            fresh = at + state.limits.task_lease
            until = fresh if task.lease_until <= at else min(task.lease_until, fresh)
            state = _replace(state, task.model_copy(update={"suspect": True, "lease_until": until}))
    return state


def _check_spec(state: GroupState, spec: TaskSpec) -> None:
    if spec.assignee not in state.living():
        raise IllegalEventError(RejectionCode.BAD_ASSIGNEE, f"{spec.assignee} is no living member, so it can get no task.")
    if state.task(spec.task_id) is not None:
        raise IllegalEventError(RejectionCode.TASK_ID_TAKEN, f"The group has a task {spec.task_id} already.")
    unknown = [task_id for task_id in spec.uses if state.task(task_id) is None]
    if unknown:
        raise IllegalEventError(RejectionCode.UNKNOWN_TASK, f"Task {spec.task_id} uses unknown tasks: {', '.join(unknown)}.")


def _check_news(state: GroupState, specs: Sequence[TaskSpec]) -> None:
    """Refuse an assignment of nothing but tasks that have been given out already."""
    again = [memory.given_before(state, spec.assignee, spec.task_desc, spec.uses) for spec in specs]
    known = [task for task in again if task is not None]
    if len(known) < len(specs):
        return
    pairs = ", ".join(f"{spec.task_id} is {task.task_id} again" for spec, task in zip(specs, known, strict=True))
    still_open = ", ".join(dict.fromkeys(task.task_id for task in known if isinstance(task, OpenTask)))
    way_out = f"pause on {still_open}" if still_open else "use what they came to"
    why = f"All of this has been given out already: {pairs}. Rather {way_out}, give out something else, or conclude."
    raise IllegalEventError(RejectionCode.REPETITION, why, repeats_turn=known[0].turn)


def _reported_task(state: GroupState, said: Said, task_id: TaskId) -> OpenTask:
    task = _open_task(state, task_id)
    header = said.message.header
    if task.assignee != header.sender:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"Task {task_id} belongs to {task.assignee}.")
    if task.turn != header.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Task {task_id} was given out in turn {task.turn}.")
    if task.deadline is not None and said.at >= task.deadline:
        raise IllegalEventError(RejectionCode.TOO_LATE, f"The time for task {task_id} is up.")
    return task


def _open_task(state: GroupState, task_id: TaskId) -> OpenTask:
    match state.task(task_id):
        case None:
            raise IllegalEventError(RejectionCode.UNKNOWN_TASK, f"The group has no task {task_id}.")
        case ClosedTask(outcome=outcome):
            raise IllegalEventError(RejectionCode.TASK_CLOSED, f"Task {task_id} is closed ({outcome}).")
        case OpenTask() as task:
            return task


def _renewed(state: GroupState, task: OpenTask, at: datetime) -> OpenTask:
    return task.model_copy(update={"lease_until": at + state.limits.task_lease, "suspect": False})


def _replace(state: GroupState, task: OpenTask | ClosedTask) -> GroupState:
    tasks = tuple(task if other.task_id == task.task_id else other for other in state.tasks)
    return state.model_copy(update={"tasks": tasks})
