"""Tasks of a group: each is assigned once and closed once, and an open task always has a lease that will expire."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import repeat
from operator import is_

from ioa.group import budget, floor
from ioa.group.events import Said, SubgroupClosed, SubgroupOpened
from ioa.group.policy.hearing import told_of_tasks
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import ClosedTask, Earshot, GroupState, OpenTask, Task, TaskMode, UnfinishedTask, Waiting, WaitingTask
from ioa.protocol.goals import Degraded, Reason
from ioa.protocol.ids import AgentId, TaskId, name_of_task_id, turn_of_task_id
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    InformTaskProgress,
    InformTaskResult,
    Pause,
    Phase,
    RejectedTask,
    SyncTaskAssignment,
    TaskOutcome,
    TaskSpec,
)
from ioa.protocol.policy import Policy

MAX_WHY_CHARS = 200
"""Maximum characters of the reason of a rejected task in the state; its message contains the whole reason."""
_CAME_TO_NOTHING = {TaskOutcome.FAILED: "failed", TaskOutcome.CANCELLED: "was cancelled", TaskOutcome.REJECTED: "was rejected"}

_TOO_DEEP = "Teams may nest {} deep, and this is the limit."


def assign(state: GroupState, said: Said, payload: SyncTaskAssignment | AsyncTaskAssignment, policy: Policy | None) -> GroupState:
    """Open the tasks of an assignment, or let them wait, and suspend the floor until they are closed, or the open ones answered."""
    sender, earshot = said.message.header.sender, _earshot(state, said, policy)
    reachable = {sender, *state.reachable(said.at)}
    given = {spec.task_id for spec in payload.tasks}
    for spec in payload.tasks:
        _check_spec(state, sender, spec, reachable, given)
    try:
        TopologicalSorter({spec.task_id: spec.uses for spec in payload.tasks}).prepare()
    except CycleError as error:
        cycle = ", ".join(dict.fromkeys(error.args[1]))
        raise IllegalEventError(RejectionCode.BAD_USES, f"These tasks wait for each other: {cycle}.") from None
    _check_repetition(state, sender, payload.tasks, said.sketches)
    absent = {member.agent_id for member in state.members if member.lost} - {sender}
    mode = TaskMode.SYNC if isinstance(payload, SyncTaskAssignment) else TaskMode.ASYNC
    unfinished = {*given, *(task.task_id for task in state.tasks_left(sender))}
    waiting = [
        WaitingTask(
            task_id=spec.task_id,
            assignee=spec.assignee,
            assigner=sender,
            mode=mode,
            after=tuple([used for used in dict.fromkeys(spec.uses) if used in unfinished]),
            timeout=spec.timeout,
            sketch=sketch,
            earshot=earshot,
            team=spec.team,
        )
        for spec, sketch in zip(payload.tasks, said.sketches or repeat(""), strict=False)
    ]
    added = tuple([task if task.after else _start(state, task, said.at, absent) for task in waiting])
    if mode is TaskMode.SYNC:
        stage = Waiting.of_valid(phase=Phase.ASSIGNED, waiter=sender, tasks=tuple([task.task_id for task in added]))
    else:
        starting = tuple([task.task_id for task in added if isinstance(task, OpenTask)])
        until = said.at + state.limits.floor_timeout
        stage = Waiting.of_valid(phase=Phase.AWAITING_ACKS, waiter=sender, tasks=starting, until=until)
    return floor.take_turn(state, stage=stage, tasks=(*state.tasks, *added))


def _earshot(state: GroupState, said: Said, policy: Policy | None) -> Earshot:
    told = () if policy is None or not policy.hides else told_of_tasks(policy, state, said.message)
    return tuple(map(state.number_of, told)) if len(told) < len(state.members) else ()


def pause(state: GroupState, said: Said, payload: Pause, _policy: Policy | None) -> GroupState:
    """Let the discussion wait until tasks are closed; this takes a turn."""
    sender = said.message.header.sender
    if unknown := untold(state, payload.triggers, sender):
        raise IllegalEventError(RejectionCode.BAD_TRIGGER, f"No task has the id {', '.join(unknown)}.")
    known = tuple([one for one in payload.triggers if (task := state.task(one)) is None or state.knows_task(sender, task)])
    stage = Waiting.of_valid(phase=Phase.PAUSED, waiter=sender, tasks=known, until=said.at + state.limits.pause_timeout)
    return floor.take_turn(state, stage=stage)


def settle(state: GroupState, at: datetime) -> GroupState:
    """Start waiting tasks whose used tasks are closed, and cancel those that use a task without a result."""
    ended = {task.task_id: task.outcome for task in state.tasks if isinstance(task, ClosedTask)}
    lost = {member.agent_id for member in state.members if member.lost}

    def settled(task: WaitingTask) -> Task:
        if lack := next((used for used in task.after if ended.get(used, TaskOutcome.DONE) is not TaskOutcome.DONE), None):
            return task.closed(TaskOutcome.CANCELLED, f"{lack} {_CAME_TO_NOTHING[ended[lack]]}")
        return _start(state, task, at, lost) if all(used in ended for used in task.after) else task

    tasks = tuple([settled(task) if isinstance(task, WaitingTask) else task for task in state.tasks])
    if all(map(is_, tasks, state.tasks)):
        return state
    return settle(state.model_copy(update={"tasks": tasks}), at)  # tasks that use a cancelled one are cancelled, too


def reject(state: GroupState, rejects: Sequence[RejectedTask], by: AgentId) -> GroupState:
    """Mark tasks as rejected, because their results are not wanted.

    Raises:
        IllegalEventError: A task is not done, has left the state, or is unknown to the sender.
    """
    for one in rejects:
        task = state.task_told_to(by, one.task_id)
        if not isinstance(task, ClosedTask) or task.outcome is not TaskOutcome.DONE:
            how = "gone or unknown" if task is None else task.outcome if isinstance(task, ClosedTask) else task.status
            why = f"{one.task_id} is {how}: only a task that is done can be rejected, and only while the group's record holds it."
            raise IllegalEventError(RejectionCode.BAD_REJECT, why)
        state = replaced(state, task.model_copy(update={"outcome": TaskOutcome.REJECTED, "why": one.why[:MAX_WHY_CHARS]}))
    return state


def progress(state: GroupState, said: Said, payload: InformTaskProgress, _policy: Policy | None) -> GroupState:
    """Acknowledge a task and renew its lease."""
    task = check_progress(state, said, payload)
    return replaced(state, renewed(state, task, said.at).model_copy(update={"progress": payload.number}))


def check_progress(state: GroupState, said: Said, payload: InformTaskProgress) -> OpenTask:
    """Find the task of a progress report.

    Raises:
        IllegalEventError: The task belongs to another member, or the report comes too late.
    """
    task = reported_task(state, said, payload.task_id)
    if payload.number <= task.progress:
        why = f"Report {payload.number} of task {task.task_id} came after report {task.progress}."
        raise IllegalEventError(RejectionCode.STALE_PROGRESS, why)
    return task


def result(state: GroupState, said: Said, payload: InformTaskResult, _policy: Policy | None) -> GroupState:
    """Close a task with the outcome of its assignee; a task of a stored team can only fail this way."""
    task = reported_task(state, said, payload.task_id)
    if task.team and payload.outcome is TaskOutcome.DONE:
        why = f"Task {task.task_id} is the team {task.team}'s: it is done when that has concluded."
        raise IllegalEventError(RejectionCode.BAD_TEAM, why)
    return replaced(state, task.closed(payload.outcome))


def open_subgroup(state: GroupState, opened: SubgroupOpened, _policy: Policy | None) -> GroupState:
    """Record the nested group that serves an open task."""
    task = own_task(state, opened.task_id, opened.by)
    if task.subgroup is not None:
        raise IllegalEventError(RejectionCode.SUBGROUP_EXISTS, f"Task {task.task_id} has a nested team: {task.subgroup}.")
    if state.depth + 1 > state.limits.max_depth:
        raise IllegalEventError(RejectionCode.TOO_DEEP, _TOO_DEEP.format(state.limits.max_depth))
    lent = budget.lend(state, task, opened.subgroup, opened.at)
    return replaced(lent, renewed(state, task, opened.at).model_copy(update={"subgroup": opened.subgroup}))


def close_subgroup(state: GroupState, closed: SubgroupClosed, _policy: Policy | None) -> GroupState:
    """Close a task with the conclusion of its nested group; for a closed task only count the group's usage."""
    task = state.task(closed.task_id)
    if isinstance(task, OpenTask | ClosedTask) and task.subgroup != closed.subgroup:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"Task {task.task_id} is not served by {closed.subgroup}.")
    if isinstance(task, ClosedTask) and state.loan(closed.subgroup) is not None:
        return budget.repay(state, closed)
    task, state = open_task(state, closed.task_id), budget.repay(state, closed)
    if closed.reason is not Reason.CONCLUDED:
        return replaced(state, task.closed(TaskOutcome.FAILED, closed.reason))
    if closed.degraded is not None:
        lacks = Degraded(lost=closed.degraded.lost, tasks=(task.task_id,))  # in place of the nested group's own tasks
        state = state.model_copy(update={"lacks": _join_lacks(state.lacks, lacks)})
    return replaced(state, task.closed(TaskOutcome.DONE))


def untold(state: GroupState, task_ids: Iterable[TaskId], to: AgentId) -> Sequence[TaskId]:
    """Return the ids of tasks that a member does not know."""
    known = {task.task_id for task in state.tasks if state.knows_task(to, task)}
    return [one for one in task_ids if one not in known and not state.may_be_folded(one)]


def suspect(state: GroupState, agent_id: AgentId, at: datetime) -> GroupState:
    """Let the open tasks of a lost member fail when their lease expires.

    A lease that expired during an outage is no evidence, and starts again.
    """
    fresh = at + state.lease_of(agent_id)

    def suspected(task: OpenTask) -> Task:
        if task.assignee != agent_id:
            return task
        until = fresh if task.lease_until <= at else min(task.lease_until, fresh)
        return task.model_copy(update={"suspect": True, "lease_until": until})

    return each_open(state, suspected)


def _start(state: GroupState, task: WaitingTask, at: datetime, lost: Collection[AgentId]) -> OpenTask:
    """Open a task: its lease and its time run from now."""
    known = {name: getattr(task, name) for name in UnfinishedTask.model_fields}
    return OpenTask(
        lease_until=at + state.lease_of(task.assignee),
        suspect=task.assignee in lost,
        deadline=min(at + task.timeout, state.limits.deadline) if task.timeout is not None else None,
        **known,
    )


def _check_spec(
    state: GroupState, sender: AgentId, spec: TaskSpec, reachable: Collection[AgentId], given: Collection[TaskId]
) -> None:
    if spec.assignee not in reachable:
        why = f"{spec.assignee} is no member, or is out of reach, so it can get no task."
        raise IllegalEventError(RejectionCode.BAD_ASSIGNEE, why)
    if state.members[state.number_of(spec.assignee)].human:
        why = f"{spec.assignee} is a person, who speaks and decides, and is given no tasks."
        raise IllegalEventError(RejectionCode.BAD_ASSIGNEE, why)
    if spec.team and state.depth + 1 > state.limits.max_depth:
        raise IllegalEventError(RejectionCode.TOO_DEEP, _TOO_DEEP.format(state.limits.max_depth))
    if turn_of_task_id(spec.task_id) != state.turn:
        why = f"{spec.task_id} cannot be the id of a task of turn {state.turn}: it has to begin with t{state.turn}-."
        raise IllegalEventError(RejectionCode.BAD_TASK_ID, why)
    others = [task_id for task_id in spec.uses if task_id not in given]
    if unknown := untold(state, others, sender):
        raise IllegalEventError(RejectionCode.UNKNOWN_TASK, f"Task {spec.task_id} uses unknown tasks: {', '.join(unknown)}.")
    if unheard := untold(state, others, spec.assignee):
        why = f"Task {spec.task_id} uses tasks of which {spec.assignee} was told nothing: {', '.join(unheard)}."
        raise IllegalEventError(RejectionCode.BAD_ADDRESSEE, why)


def reported_task(state: GroupState, said: Said, task_id: TaskId) -> OpenTask:
    """Find the open task of a report by its assignee.

    Raises:
        IllegalEventError: The task belongs to another member, or its time is over.
    """
    header = said.message.header
    task = own_task(state, task_id, header.sender)
    if task.turn != header.turn:
        raise IllegalEventError(RejectionCode.STALE_TURN, f"Task {task_id} was assigned in turn {task.turn}.")
    if task.deadline is not None and said.at >= task.deadline:
        raise IllegalEventError(RejectionCode.TOO_LATE, f"The time for task {task_id} is up.")
    return task


def open_task(state: GroupState, task_id: TaskId, by: AgentId | None = None) -> OpenTask:
    """Find an open task; `by` is the asking member, if any.

    Raises:
        IllegalEventError: That member knows no such open task. The error names the state of the task.
    """
    match state.task(task_id) if by is None else state.task_told_to(by, task_id):
        case None if state.may_be_folded(task_id):
            raise IllegalEventError(RejectionCode.TASK_CLOSED, f"Task {task_id} is closed.")
        case None:
            raise IllegalEventError(RejectionCode.UNKNOWN_TASK, f"The group has no task {task_id}.")
        case ClosedTask(outcome=outcome):
            raise IllegalEventError(RejectionCode.TASK_CLOSED, f"Task {task_id} is closed ({outcome}).")
        case WaitingTask(after=after):
            raise IllegalEventError(RejectionCode.TASK_WAITING, f"Task {task_id} has not begun: it waits for {', '.join(after)}.")
        case OpenTask() as task:
            return task


def own_task(state: GroupState, task_id: TaskId, by: AgentId) -> OpenTask:
    """Find an open task of the asking member.

    Raises:
        IllegalEventError: As in `open_task`; or the task belongs to another member.
    """
    task = open_task(state, task_id, by)
    if task.assignee != by:
        raise IllegalEventError(RejectionCode.NOT_YOUR_TASK, f"Task {task_id} belongs to {task.assignee}.")
    return task


def renewed(state: GroupState, task: OpenTask, at: datetime) -> OpenTask:
    """Return a task with a new lease."""
    return task.model_copy(update={"lease_until": at + state.lease_of(task.assignee), "suspect": False})


def replaced(state: GroupState, task: Task) -> GroupState:
    """Replace a task of a state."""
    place = [other.task_id for other in state.tasks].index(task.task_id)
    return state.model_copy(update={"tasks": (*state.tasks[:place], task, *state.tasks[place + 1 :])})


def each_open(state: GroupState, change: Callable[[OpenTask], Task]) -> GroupState:
    """Replace each open task by the result of `change`; return the same state if none changes."""
    tasks = tuple([change(task) if isinstance(task, OpenTask) else task for task in state.tasks])
    return state if all(map(is_, tasks, state.tasks)) else state.model_copy(update={"tasks": tasks})


def _check_repetition(state: GroupState, sender: AgentId, specs: Sequence[TaskSpec], sketches: Sequence[str]) -> None:
    """Reject an assignment of only tasks that the same assignees already work on.

    Raises:
        IllegalEventError: It is a repetition.
    """
    at_work: dict[tuple[AgentId, str], tuple[str, int]] = {
        (task.assignee, task.sketch): (task.task_id, task.turn) for task in state.tasks_left(sender) if task.sketch
    }
    if not at_work or not sketches:
        return
    again = [at_work.get((spec.assignee, sketch)) for spec, sketch in zip(specs, sketches, strict=True)]
    known = [task for task in again if task is not None]
    if len(known) < len(specs):
        return
    pairs = ", ".join(f"{spec.task_id} is {task_id}" for spec, (task_id, _) in zip(specs, known, strict=True))
    open_tasks = ", ".join(dict.fromkeys(task_id for task_id, _ in known))
    why = f"All of this is under way: {pairs}. Pause on {open_tasks}, give out something else, or say something new."
    raise IllegalEventError(RejectionCode.REPETITION, why, repeats_turn=known[0][1])


MAX_NAMED = 64
"""Maximum members, and maximum tasks, of `Degraded`; the latest ones."""


def lacks_of_conclusion(state: GroupState) -> Degraded | None:
    """Return the parts that a conclusion may lack now; None if no member was lost, also in nested groups.

    The author of a conclusion may not know the missing results, so the machine names lost members and their tasks.
    """
    lost = tuple(member.agent_id for member in state.members if member.lost)
    if not lost:
        return state.lacks
    return _join_lacks(state.lacks, Degraded(lost=lost, tasks=_missing_tasks(state, frozenset(lost))))


def _missing_tasks(state: GroupState, lost: frozenset[str]) -> tuple[TaskId, ...]:
    """Return the tasks of lost members that are not done, also not under the same name in a later turn.

    Only tasks in the state count. The author of the conclusion knows of older failures.
    """
    closed = [task for task in state.tasks if isinstance(task, ClosedTask)]
    done = {name: task.turn for task in closed if task.outcome is TaskOutcome.DONE and (name := name_of_task_id(task.task_id))}
    return tuple(
        task.task_id
        for task in closed
        if task.assignee in lost
        and task.outcome is not TaskOutcome.DONE
        and done.get(name_of_task_id(task.task_id), 0) <= task.turn
    )


def _join_lacks(one: Degraded | None, other: Degraded) -> Degraded:
    one = one or Degraded(lost=())
    lost, tasks = dict.fromkeys((*one.lost, *other.lost)), dict.fromkeys((*one.tasks, *other.tasks))
    return Degraded(lost=tuple(lost)[-MAX_NAMED:], tasks=tuple(tasks)[-MAX_NAMED:])


KEPT = 32
"""Maximum closed tasks in the state: those that were assigned last."""


def fold(before: GroupState, state: GroupState) -> GroupState:
    """Remove closed tasks from the state, and count them, so that an entry does not grow with the work of a group.

    Tasks that the state still refers to stay, and so do tasks that this step closed, so that every member sees their outcome.

    Args:
        before: The state before the step.
        state: The state after the step.
    """
    if len(state.tasks) <= KEPT:
        return state
    closed = [task for task in state.tasks if isinstance(task, ClosedTask)]
    lent = {loan.subgroup for loan in state.loans}  # a nested team with a loan has to be cancelled yet
    were_closed = {task.task_id for task in before.tasks if isinstance(task, ClosedTask)}
    awaited = state.stage.tasks if isinstance(state.stage, Waiting) else ()
    used = {used for task in state.tasks if isinstance(task, WaitingTask) for used in task.after}
    may_leave = were_closed.difference(awaited, used)
    gone = [task for task in closed[:-KEPT] if task.task_id in may_leave and task.subgroup not in lent]
    if not gone:
        return state
    leaving = {task.task_id for task in gone}
    stay = tuple([task for task in state.tasks if task.task_id not in leaving])
    return state.model_copy(update={"tasks": stay, "folded": state.folded + len(gone)})
