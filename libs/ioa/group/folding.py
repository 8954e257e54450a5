"""Closed tasks leave the state, so that an entry of a group does not grow with what the group has done.

The last of them stay, for whoever asks what became of them. Of the others only the numbers stay; what they came to is in the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from ioa.group.state import Assigned, AwaitingAcks, ClosedTask, FoldedTasks, GroupState, Paused
from ioa.protocol.ids import AgentId, CommId, TaskId
from ioa.protocol.levels import TASKS_ARE_FOLDED
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
    if len(state.tasks) <= KEPT or state.limits.level < TASKS_ARE_FOLDED:
        return state
    closed = [place for place, task in enumerate(state.tasks) if isinstance(task, ClosedTask)]
    if len(closed) <= KEPT:
        return state
    named, lent = _named(state), {loan.subgroup for loan in state.loans}
    were_closed = {task.task_id for task in before.tasks if isinstance(task, ClosedTask)}
    leaving = {
        place
        for place in closed[:-KEPT]
        if _may_leave(state.tasks[place], named, lent) and state.tasks[place].task_id in were_closed
    }
    if not leaving:
        return state
    gone = [task for place, task in enumerate(state.tasks) if place in leaving and isinstance(task, ClosedTask)]
    stay = tuple([task for place, task in enumerate(state.tasks) if place not in leaving])
    return state.model_copy(update={"tasks": stay, "folded": _counted(state.folded, gone)})


def _may_leave(task: object, named: frozenset[TaskId], lent: set[CommId]) -> bool:
    """Whether neither the stage nor a loan needs a closed task; a nested team with a loan has to be cancelled yet."""
    return isinstance(task, ClosedTask) and task.task_id not in named and task.subgroup not in lent


def _named(state: GroupState) -> frozenset[TaskId]:
    match state.stage:
        case AwaitingAcks(waiting=named) | Assigned(waiting=named) | Paused(triggers=named):
            return frozenset(named)
        case _:
            return frozenset()


def _counted(folded: tuple[FoldedTasks, ...], gone: Iterable[ClosedTask]) -> tuple[FoldedTasks, ...]:
    counts: dict[AgentId, FoldedTasks] = {one.assignee: one for one in folded}
    for task in gone:
        known = counts.get(task.assignee) or FoldedTasks(assignee=task.assignee)
        outcome = task.outcome.value
        counts[task.assignee] = known.model_copy(update={outcome: min(MAX_COUNT, getattr(known, outcome) + 1)})
    return tuple(counts.values())
