"""The status of each planned task, derived from the group's log alone, so that any member can continue after a crash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ioa.agent.turn_view import TurnView
from ioa.group.state import PlannedTask
from ioa.ports.brain import TaskRecord
from ioa.protocol.ids import AgentId, TaskId, name_in_long_ids, name_of_task_id, task_id_of_turn, turn_of_task_id
from ioa.protocol.messages import TaskOutcome

MAX_LOST = 2
"""Maximum attempts at one task that end because the assignee was lost."""


class ItemStatus(StrEnum):
    """Status of a planned task: BLOCKED waits for a result that it uses, SKIPPED never gets one."""

    BLOCKED = "blocked"
    READY = "ready"
    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class PlanItem:
    """A planned task, its attempts in order, and the agent that does it next if it is READY or BLOCKED."""

    plan: PlannedTask
    status: ItemStatus
    attempts: tuple[TaskRecord, ...] = ()
    performer: AgentId | None = None


def plan_progress(view: TurnView) -> tuple[PlanItem, ...] | None:
    """Return the status of each planned task; None if a member assigned other tasks, so that the plan is not followed.

    Without a plan the goal is one task for the holder of the floor.
    """
    plan = view.charter.plan or (PlannedTask(task_id=TaskId("t1"), assignee=view.me, task_desc=view.charter.goal),)
    attempts = _attempts(plan, view.tasks)
    if sum(map(len, attempts.values())) < len(view.tasks):
        return None
    items: dict[TaskId, PlanItem] = {}
    for planned in plan:
        items[planned.task_id] = _item(planned, attempts[planned.task_id], items, view)
    return tuple(items.values())


def _item(planned: PlannedTask, every: Sequence[TaskRecord], items: Mapping[TaskId, PlanItem], view: TurnView) -> PlanItem:
    # An attempt that was cancelled before it began, because a task that it uses failed, is no attempt.
    attempts = tuple(task for task in every if task.started or task.outcome is not TaskOutcome.CANCELLED)
    if any(task.outcome is TaskOutcome.DONE for task in attempts):
        return PlanItem(planned, ItemStatus.DONE, attempts)
    if any(task.outcome is None for task in attempts):
        return PlanItem(planned, ItemStatus.OPEN, attempts)
    used = [items[use].status for use in planned.uses if use in items]
    if ItemStatus.FAILED in used or ItemStatus.SKIPPED in used:
        return PlanItem(planned, ItemStatus.SKIPPED, attempts)
    performer = _performer(planned, attempts, view)
    if performer is None:
        return PlanItem(planned, ItemStatus.FAILED, attempts)
    is_ready = all(status is ItemStatus.DONE for status in used)
    return PlanItem(planned, ItemStatus.READY if is_ready else ItemStatus.BLOCKED, attempts, performer)


def _performer(planned: PlannedTask, attempts: Sequence[TaskRecord], view: TurnView) -> AgentId | None:
    """Return the first agent that has not tried the task, or else the agent that was lost during it, if it can be reached."""
    tried = {task.spec.assignee for task in attempts}
    untried = [agent for agent in (planned.assignee, *planned.others) if agent not in tried and agent in view.reachable]
    if not attempts:
        return next(iter(untried), None)
    last, lost = attempts[-1], sum(task.given_up for task in attempts)
    if last.outcome is TaskOutcome.CANCELLED or lost >= MAX_LOST:
        return None
    again = [last.spec.assignee] if last.given_up and last.spec.assignee in view.reachable else []
    return next(iter([*untried, *again]), None)


def _attempts(plan: Sequence[PlannedTask], tasks: Sequence[TaskRecord]) -> defaultdict[TaskId, list[TaskRecord]]:
    """Find the attempts at each planned task by their ids."""
    names = {name: planned.task_id for planned in plan for name in (planned.task_id, name_in_long_ids(planned.task_id))}
    found = defaultdict[TaskId, list[TaskRecord]](list)
    for task in tasks:
        task_id = task.spec.task_id
        turn, planned_id = turn_of_task_id(task_id), names.get(name_of_task_id(task_id))
        if turn is not None and planned_id is not None and task_id == task_id_of_turn(turn, planned_id):
            found[planned_id].append(task)
    return found
