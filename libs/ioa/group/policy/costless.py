"""Tasks as those know them who do not do them, where something is kept from members: without what they have cost."""

from __future__ import annotations

from ioa.group.state import OpenTask, Task
from ioa.protocol.usage import NOTHING

_MAX_REMEMBERED = 8_192


class _CostlessTasks:
    """The same object for the same task, so that whatever encodes it finds what it has encoded before.

    They are forgotten all together when they are many.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[OpenTask, OpenTask]] = {}

    def of(self, task: Task) -> Task:
        if not isinstance(task, OpenTask) or task.spent == NOTHING:
            return task
        found = self._known.get(id(task))
        if found is not None and found[0] is task:
            return found[1]
        shown = task.model_copy(update={"spent": NOTHING})
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known[id(task)] = task, shown
        return shown


_tasks = _CostlessTasks()


def costless(task: Task) -> Task:
    """Return a task without what it has cost."""
    return _tasks.of(task)
