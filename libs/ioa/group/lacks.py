"""What a conclusion may lack, since members were lost when it was stated.

A conclusion says itself whether the goal was reached. Whoever stated it may not have known what the lost would still have found, so
the machine says beside it who was lost, and which of their tasks came to nothing.
"""

from __future__ import annotations

from ioa.group.state import ClosedTask, GroupState
from ioa.protocol.goals import Degraded
from ioa.protocol.ids import TaskId, name_of_task_id
from ioa.protocol.messages import TaskOutcome

MAX_NAMED = 64
"""So many members and tasks are named at most, the latest."""


def of_conclusion(state: GroupState) -> Degraded | None:
    """Say what a conclusion that is stated now may lack; None if nobody was lost, in nested teams neither."""
    lost = tuple(member.agent_id for member in state.members if member.lost)
    if not lost:
        return state.lacks
    return _both(state.lacks, Degraded(lost=lost, tasks=_missing(state, frozenset(lost))))


def of_team(state: GroupState, task_id: TaskId, degraded: Degraded) -> GroupState:
    """Take over what the answer of a nested team lacks; the task that it served stands for those of the team."""
    return state.model_copy(update={"lacks": _both(state.lacks, Degraded(lost=degraded.lost, tasks=(task_id,)))})


def _missing(state: GroupState, lost: frozenset[str]) -> tuple[TaskId, ...]:
    """Return the tasks of lost members that were not done, and that nobody did under the same name in a later turn.

    Only tasks that are still in the state are known. Of a failure that lies further back, whoever concludes has long known.
    """
    closed = [task for task in state.tasks if isinstance(task, ClosedTask)]
    done = {name: task.given_in for task in closed if task.outcome is TaskOutcome.DONE and (name := name_of_task_id(task.task_id))}
    return tuple(
        task.task_id
        for task in closed
        if task.assignee in lost
        and task.outcome is not TaskOutcome.DONE
        and done.get(name_of_task_id(task.task_id), 0) <= task.given_in
    )


def _both(one: Degraded | None, other: Degraded) -> Degraded:
    if one is None:
        one = Degraded(lost=())
    lost, tasks = dict.fromkeys((*one.lost, *other.lost)), dict.fromkeys((*one.tasks, *other.tasks))
    return Degraded(lost=tuple(lost)[-MAX_NAMED:], tasks=tuple(tasks)[-MAX_NAMED:])
