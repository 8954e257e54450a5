"""The status of each planned task, derived from the group's log alone, so that any member can continue after a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ioa.agent.turn_view import TurnView
from ioa.group.state import PlannedTask
from ioa.ports.brain import TaskRecord
from ioa.protocol.ids import AgentId, TaskId, task_id_of_turn, turn_of_task_id
from ioa.protocol.messages import TaskOutcome

MAX_LOST = 2
"""Maximum attempts at one task that end because the assignee was lost."""


class ItemStatus(StrEnum):
    """Status of a planned task: SKIPPED never gets a result that it uses."""

    PENDING = "pending"
    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class PlanItem:
    """A planned task, its attempts in order, and the agent that does it next if it is PENDING."""

    plan: PlannedTask
    status: ItemStatus
    attempts: tuple[TaskRecord, ...] = ()
    performer: AgentId | None = None

    @property
    def done(self) -> TaskRecord | None:
        """The attempt that is done."""
        return next((task for task in self.attempts if task.outcome is TaskOutcome.DONE), None)

    @property
    def is_declined(self) -> bool:
        """Whether all agents that were asked declined the task."""
        return bool(self.attempts) and all(task.declined for task in self.attempts)


def plan_progress(view: TurnView) -> tuple[PlanItem, ...] | None:
    """Return the status of each planned task; None if a member assigned other tasks, so that the plan is not followed.

    Without a plan the goal is one task for the holder of the floor.
    """
    plan = view.charter.plan or (PlannedTask(task_id=TaskId("t1"), assignee=view.me, task_desc=view.charter.goal),)
    items: dict[TaskId, PlanItem] = {}
    for planned in plan:
        items[planned.task_id] = _item(planned, [task for task in view.tasks if _is_attempt(task, planned)], items, view)
    known = sum(_is_attempt(task, planned) for task in view.tasks for planned in plan)
    return tuple(items.values()) if known == len(view.tasks) else None


def _is_attempt(task: TaskRecord, planned: PlannedTask) -> bool:
    task_id = task.spec.task_id
    turn = turn_of_task_id(task_id)
    return turn is not None and task_id == task_id_of_turn(turn, planned.task_id)


def _item(planned: PlannedTask, every: Sequence[TaskRecord], items: Mapping[TaskId, PlanItem], view: TurnView) -> PlanItem:
    # An attempt that was cancelled before it began, because a task that it uses failed, is no attempt.
    attempts = tuple(task for task in every if task.started or task.outcome is not TaskOutcome.CANCELLED)
    outcomes = {task.outcome for task in attempts}
    if TaskOutcome.DONE in outcomes:
        return PlanItem(planned, ItemStatus.DONE, attempts)
    if None in outcomes:
        return PlanItem(planned, ItemStatus.OPEN, attempts)
    if any(items[use].status in (ItemStatus.FAILED, ItemStatus.SKIPPED) for use in planned.uses if use in items):
        return PlanItem(planned, ItemStatus.SKIPPED, attempts)
    performer = _performer(planned, attempts, view)
    return PlanItem(planned, ItemStatus.FAILED if performer is None else ItemStatus.PENDING, attempts, performer)


def _performer(planned: PlannedTask, attempts: Sequence[TaskRecord], view: TurnView) -> AgentId | None:
    """Return the first agent in reach that has not tried the task, or else the agent that was lost during the last attempt."""
    last = attempts[-1] if attempts else None
    if last is not None and (last.outcome is TaskOutcome.CANCELLED or sum(task.given_up for task in attempts) >= MAX_LOST):
        return None
    tried = {task.spec.assignee for task in attempts}
    agents = [agent for agent in (planned.assignee, *planned.others) if agent not in tried]
    if last is not None and last.given_up:
        agents.append(last.spec.assignee)
    return next((agent for agent in agents if agent in view.reachable), None)
