"""The encoding of a group's state, which each entry carries.

Most of it is as the entry before left it: who is in the group and what it is held to, and all open tasks but one or two. So these
parts are encoded once and found again. What a task has by default is left out, which is most of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ioa.group.state import GroupState, Task
from ioa.protocol.codec import encode_items, encode_list, encode_map_head, encode_value
from ioa.protocol.ids import CommId

_MAX_REMEMBERED = 8_192

_LASTING = {"comm_id", "goal_id", "user", "owner", "members", "limits", "depth", "parent"}
"""The first fields of a state: they change when a member is lost or comes back, and never else."""
_APART = {*_LASTING, "tasks"}


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


class _EncodedLasting:
    """The last encoding of each group's lasting fields, for each way in which its members are known to play secret roles.

    They are forgotten all together when they are many.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[CommId, tuple[tuple[int, ...], ...]], tuple[tuple[object, ...], bytes]] = {}

    def encode(self, state: GroupState) -> bytes:
        # Compared are, nearly always, the same objects: this looks at nothing in them. Those of a head that was read anew are only
        # equal, so they are the ones to compare with from then on.
        fields = state.comm_id, state.goal_id, state.user, state.owner, state.members, state.limits, state.depth, state.parent
        key = state.comm_id, tuple([member.roles for member in state.members])
        known = self._known.get(key)
        data = known[1] if known and known[0] == fields else encode_items(state.model_dump(mode="json", include=_LASTING))
        if len(self._known) >= _MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = fields, data
        return data


_lasting = _EncodedLasting()


def encode_state(state: GroupState) -> bytes:
    """Encode a state, so that it decodes to the same."""
    changing = {**state.model_dump(mode="json", exclude=_APART), "tasks": None}
    head = encode_map_head(len(_LASTING) + len(changing))
    return head + _lasting.encode(state) + encode_items(changing)[:-1] + encode_list(_tasks.encode(state.tasks))
