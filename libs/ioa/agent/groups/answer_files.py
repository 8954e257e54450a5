"""The files of a group's answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ioa.errors import InvalidInputError
from ioa.ports.brain_types import TaskRecord
from ioa.protocol.goals import Artifact
from ioa.protocol.ids import TaskId
from ioa.protocol.messages import MAX_ARTIFACTS, TaskOutcome


def files_of_answer(tasks: Sequence[TaskRecord]) -> tuple[Artifact, ...]:
    """Return the files of the finished tasks that all members know, in their order; the latest if there are too many.

    A file is left out if a task that uses its task has made a file of the same name.
    """
    done = [task for task in tasks if task.outcome is TaskOutcome.DONE and task.told_to_all]
    used: dict[TaskId, set[TaskId]] = {}
    """The tasks that each task uses, directly or through other tasks; a task uses only earlier tasks."""
    for task in tasks:
        used[task.spec.task_id] = set(task.spec.uses).union(*(used.get(task_id, ()) for task_id in task.spec.uses))
    replaced = defaultdict[str, set[TaskId]](set)
    for task in done:
        for file in task.artifacts:
            replaced[file.name] |= used[task.spec.task_id]
    kept = [file for task in done for file in task.artifacts if task.spec.task_id not in replaced[file.name]]
    return tuple({file.object_name: file for file in kept}.values())[-MAX_ARTIFACTS:]


def named_files(tasks: Sequence[TaskRecord], names: Sequence[str]) -> tuple[Artifact, ...]:
    """Return files of finished tasks by name; of each name the newest.

    Raises:
        InvalidInputError: There is no file of a name.
    """
    made = {file.name: file for task in tasks if task.outcome is TaskOutcome.DONE for file in task.artifacts}
    if unknown := [name for name in names if name not in made]:
        there = f"there are {', '.join(made)}" if made else "no finished task has made any"
        raise InvalidInputError(f"No file is called {', '.join(unknown)}; {there}.")
    return tuple([made[name] for name in dict.fromkeys(names)])
