"""What a group remembers of what was said, and what of it a new message or task would only say again (paper, section 4.2).

Sketches of the last messages and results are in `GroupState.heard`, those of the last tasks in `GroupState.given`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ioa.group.lexicon import feature_of
from ioa.group.repetition import LOOKBACK, TASKS_REMEMBERED, repeated, repeated_task
from ioa.group.sketch import OF_RESULT, OF_TASK, Remembered, Sketch, is_of_task, place_in, sketch_of, with_place
from ioa.group.state import ClosedTask, GroupState, OpenTask
from ioa.group.wording import Wording, wording_of
from ioa.protocol.ids import AgentId, TaskId
from ioa.protocol.messages import TaskOutcome, TaskSpec

_TURNS_TOLD_APART = 1 << 16


@dataclass(frozen=True)
class Repetition:
    """What is said again: what a member said in a turn, or what a task asks for or came to."""

    turn: int
    what: str


def said_before(state: GroupState, speaker: AgentId, wording: Wording) -> Repetition | None:
    """Find what a message to the group would only say again: a message, a task that is open or done, or a result."""
    heard = (*_standing(state), *state.heard)
    found = repeated(wording, _number(state, speaker), heard, lambda old: _names(state, old))
    if found is None:
        return None
    if found.marks & (OF_TASK | OF_RESULT):
        task = state.tasks[found.place]
        what = f"task {task.task_id} is about" if found.marks & OF_TASK else f"task {task.task_id} came to"
        return Repetition(turn=task.turn, what=what)
    turn = state.turn - (state.turn - found.place) % _TURNS_TOLD_APART
    return Repetition(turn=turn, what=f"{state.members[found.who].agent_id} said in turn {turn}")


def given_before(state: GroupState, assignee: AgentId, task_desc: str, uses: Collection[TaskId]) -> OpenTask | ClosedTask | None:
    """Find the open or done task of the same member that this one would be again; what has failed may be tried again."""
    own = [sketch for sketch in _standing(state) if _task_of(state, sketch).assignee == assignee]
    found = repeated_task(wording_of(task_desc), uses, own) if own else None
    return state.tasks[found.place] if found is not None else None


def after_message(state: GroupState, speaker: AgentId, wording: Wording) -> tuple[Sketch, ...]:
    """What is `heard` after a message."""
    return _with(state.heard, sketch_of(wording, _number(state, speaker), state.turn))


def after_assignment(state: GroupState, assigner: AgentId, specs: Iterable[TaskSpec]) -> GroupState:
    """Remember tasks that have just been added to the group's."""
    place, who = {task.task_id: at for at, task in enumerate(state.tasks)}, _number(state, assigner)
    new = [sketch_of(wording_of(spec.task_desc), who, place[spec.task_id], kind=OF_TASK, uses=spec.uses) for spec in specs]
    return state.model_copy(update={"given": (*state.given, *new)[-TASKS_REMEMBERED:]})


def after_result(state: GroupState, task_id: TaskId, content: str) -> GroupState:
    """Remember what a task that is done came to."""
    place = [task.task_id for task in state.tasks].index(task_id)
    wording = wording_of(content)
    if not wording.features:
        return state
    sketch = sketch_of(wording, _number(state, state.tasks[place].assignee), place, kind=OF_RESULT)
    return state.model_copy(update={"heard": _with(state.heard, sketch)})


def places(state: GroupState) -> frozenset[int]:
    """The places of the tasks that are remembered, or whose results are, among the group's."""
    return frozenset(place_in(sketch) for sketch in (*state.heard, *state.given) if is_of_task(sketch))


def without_tasks(state: GroupState, leaving: Collection[int]) -> GroupState:
    """Take the tasks at some places out of the group's; none of them is remembered."""
    kept = [place for place in range(len(state.tasks)) if place not in leaving]
    moved = {place: to for to, place in enumerate(kept)}
    return state.model_copy(
        update={
            "tasks": tuple([state.tasks[place] for place in kept]),
            "heard": tuple([_moved(sketch, moved) for sketch in state.heard]),
            "given": tuple([_moved(sketch, moved) for sketch in state.given]),
        }
    )


def _moved(sketch: Sketch, moved: Mapping[int, int]) -> Sketch:
    return with_place(sketch, moved[place_in(sketch)]) if is_of_task(sketch) else sketch


def _with(heard: tuple[Sketch, ...], sketch: Sketch) -> tuple[Sketch, ...]:
    return (*heard, sketch)[-LOOKBACK:]


def _standing(state: GroupState) -> list[Sketch]:
    """The sketches of the tasks that are open or done."""
    return [
        sketch
        for sketch in state.given
        if isinstance(task := _task_of(state, sketch), OpenTask) or task.outcome is TaskOutcome.DONE
    ]


def _task_of(state: GroupState, sketch: Sketch) -> OpenTask | ClosedTask:
    return state.tasks[place_in(sketch)]


def _names(state: GroupState, old: Remembered) -> set[int]:
    """Naming who said something, or who is to do it, is nothing new."""
    names = {feature_of(state.members[old.who].agent_id)}
    if old.marks & OF_TASK:
        names.add(feature_of(state.tasks[old.place].assignee))
    return names


def _number(state: GroupState, agent_id: AgentId) -> int:
    return [member.agent_id for member in state.members].index(agent_id)
