"""What to say with the floor: hand out the plan, wait for what is open, conclude when nothing is left.

Stateless: the same group record gives the same utterance, whoever holds the floor and whatever happened before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ioa.agent.rules.plan_progress import Job, PlanProgress, PlanStatus
from ioa.agent.rules.titles import title_of
from ioa.ports.brain import GroupView, Utterance
from ioa.protocol.ids import TaskId, task_id_of_turn
from ioa.protocol.messages import (
    MAX_TASKS_PER_ASSIGNMENT,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Discussion,
    Pause,
    SyncTaskAssignment,
    TaskSpec,
)

TURNS_OF_ASYNC = 3
"""Assign, pause, conclude: with fewer turns left tasks are given out synchronously, which needs no pause."""
PATIENCE = 1
"""How many refusals of a turn are answered by deciding again on the fresh record; after that only what cannot be wrong is said."""


def next_utterance(view: GroupView) -> Utterance:
    """Decide what to say now; always something that is legal, if anything is."""
    progress = PlanProgress(view)
    ready = [] if progress.is_led_by_others else _to_give_out(progress)
    if len(view.refusals) > PATIENCE or not ready or SyncTaskAssignment not in view.legal:
        return _without_assigning(view, progress)
    return _assignment(view, progress.jobs, ready)


def _to_give_out(progress: PlanProgress) -> list[Job]:
    """Return what can be given out now, with who gets it: what is ready, and what waits for this, or for what is open, alone."""
    jobs = progress.jobs
    chosen: list[Job] = []
    provided = {job.plan.task_id for job in jobs if job.standing.is_settled or job.standing is PlanStatus.OPEN}
    known = {job.plan.task_id for job in jobs}
    for job in jobs:
        if len(chosen) == MAX_TASKS_PER_ASSIGNMENT:
            break
        if job.standing is PlanStatus.BLOCKED and known.intersection(job.plan.uses) <= provided:
            job = replace(job, performer=progress.performer_of(job.plan))
        if job.performer is not None:
            chosen.append(job)
            provided.add(job.plan.task_id)
    return chosen


def _assignment(view: GroupView, jobs: Sequence[Job], ready: Sequence[Job]) -> Utterance:
    given_out = (PlanStatus.DONE, PlanStatus.OPEN)
    known = {job.plan.task_id: job.attempt.spec.task_id for job in jobs if job.attempt is not None and job.standing in given_out}
    known |= {job.plan.task_id: task_id_of_turn(view.state.turn, job.plan.task_id) for job in ready}
    tasks = tuple(
        TaskSpec(
            task_id=task_id_of_turn(view.state.turn, job.plan.task_id),
            assignee=job.performer,
            task_desc=job.plan.task_desc or view.charter.goal,
            task_abstract=title_of(job.plan.task_desc),
            uses=tuple(attempt for use in job.plan.uses if (attempt := known.get(use)) is not None),
        )
        for job in ready
        if job.performer is not None
    )
    content = "; ".join(f"{task.assignee}: {task.task_abstract}" for task in tasks)
    given = {task.task_id for task in tasks}
    alone = sum(given.isdisjoint(task.uses) for task in tasks) == 1 and not view.state.open_tasks
    if alone or view.state.turns_left < TURNS_OF_ASYNC:
        return SyncTaskAssignment(content=content, tasks=tasks)
    return AsyncTaskAssignment(content=content, tasks=tasks)


def _without_assigning(view: GroupView, progress: PlanProgress) -> Utterance:
    open_tasks = tuple(task.task_id for task in view.state.unfinished_tasks)
    if open_tasks:
        patient = len(view.refusals) > PATIENCE or progress.is_led_by_others
        triggers = open_tasks if patient else _triggers(view, progress.jobs, open_tasks)
        return Pause(content=f"Waiting for {', '.join(triggers)}.", triggers=triggers[:256])
    others = [agent for agent in view.state.living() if agent != view.me] or [agent for agent in view.reachable if agent != view.me]
    if ConcludeGroupDiscussion not in view.legal and Discussion in view.legal and others:
        owner = view.charter.owner
        return Discussion(content="Over to you.", next_speaker=owner if owner in others else others[0])
    return ConcludeGroupDiscussion(content="Everything that can be done is done.")


def _triggers(view: GroupView, jobs: Sequence[Job], open_tasks: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
    """Return the fewest open tasks that free another one; all of them if none does, or if there are no turns to spare."""
    waves = 2 * sum(job.standing is PlanStatus.BLOCKED for job in jobs) + TURNS_OF_ASYNC
    if view.state.turns_left < waves:
        return open_tasks
    by_id = {job.plan.task_id: job for job in jobs}
    options: list[tuple[TaskId, ...]] = []
    for job in jobs:
        if job.standing is not PlanStatus.BLOCKED:
            continue
        needed = [by_id[use] for use in job.plan.uses if use in by_id and not by_id[use].standing.is_settled]
        if all(other.standing is PlanStatus.OPEN for other in needed):
            options.append(tuple(other.attempt.spec.task_id for other in needed if other.attempt is not None))
    return min(options, key=len, default=open_tasks)
