"""Closed tasks leave the state, so that an entry of a group does not grow with what the group has done.

The last of them stay, for whoever asks what became of them. Of the others only the numbers stay; what they came to is in the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from ioa.group.state import Assigned, AwaitingAcks, ClosedTask, Earshot, FoldedTasks, GroupState, Paused, Task, WaitingTask
from ioa.protocol.ids import AgentId, TaskId, turn_of_task_id
from ioa.protocol.usage import MAX_COUNT

KEPT = 32
"""So many closed tasks stay in the state, those that were given out last."""


def fold(before: GroupState, state: GroupState) -> GroupState:
    """Take closed tasks out of the state that nothing in it names any more.

    A task that was closed in this very step stays, so that every member sees how it ended.

    Args:
        before: The state that the step began with.
        state: The state that it has led to.
    """
    if len(state.tasks) <= KEPT:
        return state
    closed = [task for task in state.tasks if isinstance(task, ClosedTask)]
    if len(closed) <= KEPT:
        return state
    lent = {loan.subgroup for loan in state.loans}  # a nested team with a loan has to be cancelled yet
    were_closed = {task.task_id for task in before.tasks if isinstance(task, ClosedTask)}
    may_leave = were_closed - _named(state) - {used for task in state.tasks if isinstance(task, WaitingTask) for used in task.after}
    gone = [task for task in closed[:-KEPT] if task.task_id in may_leave and task.subgroup not in lent]
    if not gone:
        return state
    leaving = {task.task_id for task in gone}
    stay = tuple([_short(task) for task in state.tasks if task.task_id not in leaving])
    return state.model_copy(update={"tasks": stay, "folded": _counted(state.folded, gone)})


def _short(task: Task) -> Task:
    is_told = isinstance(task, ClosedTask) and task.turn and task.turn == turn_of_task_id(task.task_id)
    return task.model_copy(update={"turn": 0}) if is_told else task


def _named(state: GroupState) -> frozenset[TaskId]:
    match state.stage:
        case AwaitingAcks(waiting=named) | Assigned(waiting=named) | Paused(triggers=named):
            return frozenset(named)
        case _:
            return frozenset()


def _counted(folded: tuple[FoldedTasks, ...], gone: Iterable[ClosedTask]) -> tuple[FoldedTasks, ...]:
    counts: dict[tuple[AgentId, Earshot], FoldedTasks] = {(one.assignee, one.earshot): one for one in folded}
    for task in gone:
        of = task.assignee, task.earshot
        known = counts.get(of) or FoldedTasks(assignee=task.assignee, earshot=task.earshot)
        outcome = task.outcome.value
        counts[of] = known.model_copy(update={outcome: min(MAX_COUNT, getattr(known, outcome) + 1)})
    return tuple(counts.values())
