"""The progress of each planned task, derived from the group's log alone, so that any member can continue after a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ioa.agent.turn_view import TurnView
from ioa.ports.brain import TaskRecord
from ioa.protocol.ids import AgentId, TaskId, task_id_of_turn, turn_of_task_id
from ioa.protocol.messages import TaskOutcome
from ioa.protocol.setup.charter import PlannedTask

MAX_LOST = 2
"""Maximum attempts at one task that end because the assignee was lost."""


class PlanItem(NamedTuple):
    """A planned task.

    Attributes:
        attempts: The attempts at it, in order.
        performer: The agent that does it next; None if it is done or open, or if no agent is left.
        is_skipped: It uses a result that will never be there.
    """

    plan: PlannedTask
    attempts: tuple[TaskRecord, ...]
    performer: AgentId | None = None
    is_skipped: bool = False

    @property
    def done(self) -> TaskRecord | None:
        """The attempt that is done."""
        return next((task for task in self.attempts if task.outcome is TaskOutcome.DONE), None)

    @property
    def is_provided(self) -> bool:
        """Whether it is done or open."""
        return any(task.outcome in (None, TaskOutcome.DONE) for task in self.attempts)

    @property
    def is_declined(self) -> bool:
        """Whether all agents that were asked declined the task."""
        return bool(self.attempts) and all(task.declined for task in self.attempts)


def plan_progress(view: TurnView) -> tuple[PlanItem, ...] | None:
    """Return the progress of each planned task; None if a member assigned other tasks, so that the plan is not followed.

    Without a plan the goal is one task for the holder of the floor.
    """
    plan = view.charter.plan or (PlannedTask(task_id=TaskId("t1"), assignee=view.me, task_desc=view.charter.goal),)
    items: dict[TaskId, PlanItem] = {}
    known = 0
    for planned in plan:
        tasks = [task for task in view.tasks if _is_attempt(task.spec.task_id, planned)]
        known += len(tasks)
        items[planned.task_id] = _item(planned, tasks, items, view)
    return tuple(items.values()) if known == len(view.tasks) else None


def _is_attempt(task_id: TaskId, planned: PlannedTask) -> bool:
    turn = turn_of_task_id(task_id)
    return turn is not None and task_id == task_id_of_turn(turn, planned.task_id)


def _item(planned: PlannedTask, tasks: Sequence[TaskRecord], items: Mapping[TaskId, PlanItem], view: TurnView) -> PlanItem:
    # A task that was cancelled before it began, because a task that it uses failed, is no attempt.
    item = PlanItem(planned, tuple(task for task in tasks if task.started or task.outcome is not TaskOutcome.CANCELLED))
    if item.is_provided:
        return item
    used = [items[use] for use in planned.uses if use in items]
    if any(one.performer is None and not one.is_provided for one in used):
        return item._replace(is_skipped=True)
    return item._replace(performer=_performer(item, view))


def _performer(item: PlanItem, view: TurnView) -> AgentId | None:
    """Return the first agent in reach that has not tried the task, or else the agent that was lost during the last attempt."""
    last = item.attempts[-1] if item.attempts else None
    if last is not None and (last.outcome is TaskOutcome.CANCELLED or sum(task.given_up for task in item.attempts) >= MAX_LOST):
        return None
    tried = {task.spec.assignee for task in item.attempts}
    agents = [agent for agent in (item.plan.assignee, *item.plan.others) if agent not in tried]
    if last is not None and last.given_up:
        agents.append(last.spec.assignee)
    return next((agent for agent in agents if agent in view.reachable), None)
