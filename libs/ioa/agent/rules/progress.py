"""Following a plan: the progress of each task, and the next message of the floor holder.

Both derive from the group's log alone, so that any member can continue after a crash, and a turn can be repeated: assign each task
that can be assigned, wait for the open ones, then conclude.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ioa.agent.turn_view import TurnView
from ioa.ports.brain_types import TaskRecord, Utterance
from ioa.protocol.ids import AgentId, TaskId, task_id_of_turn, turn_of_task_id
from ioa.protocol.messages import MAX_TASKS_PER_ASSIGNMENT, ConcludeGroupDiscussion, Pause, TaskOutcome, TaskSpec
from ioa.protocol.setup.charter import PlannedTask
from ioa.protocol.texts import shortened

_MAX_REFUSALS = 1
"""Rejections in a turn after which no task is assigned, so that the turn ends with a message that is certainly legal."""
_MAX_TITLE_BYTES = 90
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


def next_utterance(view: TurnView) -> Utterance:
    """Return the next message; a legal one if any message is legal."""
    items = plan_progress(view) or ()
    chosen = _to_assign(items)
    if chosen and len(view.refusals) <= _MAX_REFUSALS and "SYNC_TASK_ASSIGNMENT" in view.legal:
        return _assignment(view, items, chosen)
    if open_tasks := tuple(task.task_id for task in view.state.unfinished_tasks):
        return Pause(content=f"Waiting for {', '.join(open_tasks)}.", triggers=open_tasks[:256])
    others = [agent for agent in view.state.living() or view.reachable if agent != view.me]
    if "CONCLUDE_GROUP_DISCUSSION" not in view.legal and "DISCUSSION" in view.legal and others:
        owner = view.charter.owner
        return view.say("Over to you.", to=owner if owner in others else others[0])
    return ConcludeGroupDiscussion()


def _to_assign(items: Sequence[PlanItem]) -> list[PlanItem]:
    """Return the pending tasks that use only results of tasks that are done, open, or assigned with them."""
    chosen: list[PlanItem] = []
    known = {item.plan.task_id for item in items}
    provided = {item.plan.task_id for item in items if item.is_provided}
    for item in items:
        if item.performer is not None and known.intersection(item.plan.uses) <= provided:
            chosen.append(item)
            provided.add(item.plan.task_id)
    return chosen[:MAX_TASKS_PER_ASSIGNMENT]


def _assignment(view: TurnView, items: Sequence[PlanItem], chosen: Sequence[PlanItem]) -> Utterance:
    given: dict[TaskId, TaskId] = {item.plan.task_id: task_id_of_turn(view.turn, item.plan.task_id) for item in chosen}
    attempts = {item.plan.task_id: item.attempts[-1].spec.task_id for item in items if item.attempts} | given
    tasks = []
    for item in chosen:
        assert item.performer is not None
        text = item.plan.task_desc or view.goal
        uses = tuple(attempts[use] for use in item.plan.uses if use in attempts)
        task_id, title = given[item.plan.task_id], short_title(text)
        tasks.append(TaskSpec(task_id=task_id, assignee=item.performer, task_desc=text, task_abstract=title, uses=uses))
    return view.assign(tasks, say="; ".join(f"{task.assignee}: {task.task_abstract}" for task in tasks))


def short_title(task_desc: str) -> str:
    """Return the first line of a task, shortened."""
    return one_line(task_desc.strip().partition("\n")[0], _MAX_TITLE_BYTES)


def one_line(text: str, most_bytes: int) -> str:
    """Return a text in one line, shortened."""
    return shortened(" ".join(text.split()), most_bytes)
