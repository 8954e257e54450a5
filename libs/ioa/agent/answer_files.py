"""Which files go with the answer of a group that names none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import or_

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
    lineage, made_anew = Lineage({task.spec.task_id: task.spec.uses for task in tasks}), defaultdict[str, int](int)
    for task in done:
        for file in task.artifacts:
            made_anew[file.name] |= lineage.under(task.spec.task_id)
    kept = [file for task in done for file in task.artifacts if not made_anew[file.name] & lineage.bit(task.spec.task_id)]
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


class Lineage:
    """Which task builds on which, at first or second hand.

    Args:
        uses: What each task was told to use. There may be 256 of them, each with 32: looked for anew for each two, it took seconds.
    """

    def __init__(self, uses: Mapping[TaskId, Sequence[TaskId]]) -> None:
        self._bits = {task_id: 1 << number for number, task_id in enumerate({*uses, *chain.from_iterable(uses.values())})}
        self._under: dict[TaskId, int] = {}
        begun, behind = set[TaskId](), list(uses)
        while behind:
            task_id = behind[-1]
            if task_id in self._under:
                behind.pop()
            elif task_id in begun:  # of all that it uses it is known by now what they build on
                self._under[task_id] = self._all_of(uses.get(task_id, ()))
            else:
                begun.add(task_id)
                behind += [used for used in uses.get(task_id, ()) if used not in begun]

    def _all_of(self, used: Sequence[TaskId]) -> int:
        return reduce(or_, (self._bits[one] | self._under.get(one, 0) for one in used), 0)

    def bit(self, task_id: TaskId) -> int:
        """Return the bit that stands for a task; 0 of one that is not there."""
        return self._bits.get(task_id, 0)

    def under(self, task_id: TaskId) -> int:
        """Return the bits of the tasks that a task builds on."""
        return self._under[task_id]

    def has(self, task_id: TaskId, used: TaskId) -> bool:
        """Whether a task builds on another one."""
        return bool(self._under[task_id] & self.bit(used))
