"""Saying the same again with nothing new in between, which is refused (paper, section 4.2).

What is the same, the sketches of an event tell (`ioa.repetition`); no prose is read here. A member's remarks are remembered as long
as nothing else happens in the group. Silence is nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.group.events import Event, RepetitionRefused, Said, TimerFired
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState, Monologue, Remark
from ioa.protocol.ids import AgentId
from ioa.protocol.messages import Discussion, Pass, TaskSpec, Thinking

MAX_REMARKS = 8


def check_remark(state: GroupState, said: Said) -> Monologue | None:
    """Refuse a remark that its speaker has made already; return what is remembered after it.

    Raises:
        IllegalEventError: It is a repetition.
    """
    speaker, known = said.message.header.sender, state.monologue
    made = known.remarks if known is not None and known.by == speaker else ()
    if not said.sketches:
        return None
    sketch = said.sketches[0]
    for remark in made:
        if remark.sketch == sketch:
            open_tasks = ", ".join(task.task_id for task in state.unfinished_tasks)
            way_out = f"give out a task, or {f'pause on {open_tasks}' if open_tasks else 'conclude'}"
            way_out = way_out if state.course is None else "or pass"
            why = f"You said the same in turn {remark.turn}, and nothing has happened since. Say something new, {way_out}."
            raise IllegalEventError(RejectionCode.REPETITION, why, repeats_turn=remark.turn)
    return Monologue(by=speaker, remarks=(*made, Remark(turn=state.turn, sketch=sketch))[-MAX_REMARKS:])


def check_tasks(state: GroupState, sender: AgentId, specs: Sequence[TaskSpec], sketches: Sequence[str]) -> None:
    """Refuse an assignment of nothing but tasks that the same assignees are at already.

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


def after(before: GroupState, state: GroupState, event: Event) -> GroupState:
    """Forget the monologue if something has happened. What was said last, the rule for discussions has put there."""
    if state.monologue is None or isinstance(event, RepetitionRefused):
        return state
    if isinstance(event, Said) and isinstance(event.message.payload, Discussion | Pass | Thinking):
        return state
    if isinstance(event, TimerFired) and len(state.unfinished_tasks) == len(before.unfinished_tasks):
        return state
    return state.model_copy(update={"monologue": None})
