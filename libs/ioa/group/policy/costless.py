"""Tasks as those know them who do not do them, where something is kept from members: without what they have cost."""

from __future__ import annotations

from weakref import ref

from ioa.group.state import OpenTask, Task
from ioa.protocol.usage import NOTHING


class _CostlessTasks:
    """The same object for the same task, so that whatever encodes it finds what it has encoded before. Each goes with its task."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ref[OpenTask], OpenTask]] = {}

    def of(self, task: Task) -> Task:
        if not isinstance(task, OpenTask) or task.spent == NOTHING:
            return task
        found = self._known.get(id(task))
        if found is not None and found[0]() is task:
            return found[1]
        shown = task.model_copy(update={"spent": NOTHING})
        number, known = id(task), self._known
        known[number] = ref(task, lambda _gone: known.pop(number, None)), shown
        return shown


_tasks = _CostlessTasks()


def costless(task: Task) -> Task:
    """Return a task without what it has cost."""
    return _tasks.of(task)
