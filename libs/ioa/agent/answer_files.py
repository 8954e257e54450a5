"""Which files go with the answer of a group that names none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ioa.errors import InvalidInputError
from ioa.ports.brain import TaskRecord
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, TaskOutcome


def files_of_answer(tasks: Sequence[TaskRecord]) -> tuple[Artifact, ...]:
    """Return the files of the tasks that are done, in the order of the tasks; the latest, if they are too many.

    A file gives way to one of its name that a task made which builds on it; two tasks that know nothing of each other keep theirs.
    All hear the answer, so that files of tasks of which not all were told go with it only if they are named.
    """
    done = [task for task in tasks if task.outcome is TaskOutcome.DONE and task.told_to_all]
    uses = {task.spec.task_id: task.spec.uses for task in tasks}
    made_anew = {(under, file.name) for task in done for under in built_on(task.spec.task_id, uses) for file in task.artifacts}
    kept = [file for task in done for file in task.artifacts if (task.spec.task_id, file.name) not in made_anew]
    return tuple({file.object_name: file for file in kept}.values())[-MAX_ARTIFACTS:]


def named_files(tasks: Sequence[TaskRecord], names: Sequence[str]) -> tuple[Artifact, ...]:
    """Return files of tasks that are done by their names, of each name the newest.

    Raises:
        InvalidInputError: There is none of a name; it says which there are.
    """
    made = {file.name: file for task in tasks if task.outcome is TaskOutcome.DONE for file in task.artifacts}
    if unknown := [name for name in names if name not in made]:
        there = f"there are {', '.join(made)}" if made else "no task that is done has made any"
        raise InvalidInputError(f"No file is called {', '.join(unknown)}; {there}.")
    return tuple([made[name] for name in dict.fromkeys(names)])


def built_on(task_id: TaskId, uses: Mapping[TaskId, Sequence[TaskId]]) -> set[TaskId]:
    """Return the tasks that a task builds on, at first or second hand."""
    found: set[TaskId] = set()
    behind = list(uses[task_id])
    while behind:
        used = behind.pop()
        if used not in found:
            found.add(used)
            behind += uses.get(used, ())
    return found
