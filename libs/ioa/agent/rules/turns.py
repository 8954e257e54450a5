"""The next message of the floor holder: assign each task that can be assigned, wait for the open ones, then conclude.

The same log always gives the same message, so that a turn can be repeated after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.agent.rules.conclusion import short_title
from ioa.agent.rules.progress import PlanItem, plan_progress
from ioa.agent.turn_view import TurnView
from ioa.ports.brain import Utterance
from ioa.protocol.ids import TaskId, task_id_of_turn
from ioa.protocol.messages import MAX_TASKS_PER_ASSIGNMENT, ConcludeGroupDiscussion, Pause, TaskSpec

_MAX_REFUSALS = 1
"""Rejections in a turn after which no task is assigned, so that the turn ends with a message that is certainly legal."""


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
