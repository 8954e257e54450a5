"""The encoding of a group's tasks, which each entry carries.

All open tasks but one or two are as the entry before left them. So each is encoded once, and found again by its identity. What a
task has by default is left out, which is most of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.group.state import GroupState, Task
from ioa.protocol.codec import encode_list, encode_value

_MAX_REMEMBERED = 8_192


class _EncodedTasks:
    """Encodings by the identity of a task, which never changes. They are forgotten all together when they are many."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Task, bytes]] = {}

    def encode(self, tasks: Sequence[Task]) -> list[bytes]:
        known = self._known
        return [
            found[1] if (found := known.get(id(task))) is not None and found[0] is task else self._encode(task) for task in tasks
        ]

    def _encode(self, task: Task) -> bytes:
        data = encode_value({"status": task.status, **task.model_dump(mode="json", exclude_defaults=True)})
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known[id(task)] = task, data
        return data


_tasks = _EncodedTasks()


def encode_tasks(state: GroupState) -> bytes:
    """Encode the tasks of a group, so that they decode to the same."""
    return encode_list(_tasks.encode(state.tasks))
