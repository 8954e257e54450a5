"""The encoding of a group's state, which each entry carries.

Most of it is as the entry before left it: who is in the group and what it is held to, and all open tasks but one or two. So these
parts are encoded once and found again. What a task has by default is left out, which is most of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from ioa.group.in_memory import state_bytes
from ioa.group.state import GroupState, Task
from ioa.protocol.codec import encode_items, encode_list, encode_map_head, encode_value
from ioa.protocol.ids import CommId

_MOST, _MOST_BYTES = 8_192, 64_000_000
"""Of how many groups the lasting fields are remembered, and what these may take up in memory with their encodings."""

_LASTING = {"comm_id", "goal_id", "user", "owner", "members", "limits", "depth", "parent"}
"""The first fields of a state: they change when a member is lost or comes back, and never else."""
_APART = {*_LASTING, "tasks"}

_Key = tuple[CommId, tuple[tuple[int, ...], ...]]
_Known = tuple[tuple[object, ...], bytes]


class _EncodedTasks:
    """Encodings by the identity of a task, which never changes. Each goes with its task."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Task], bytes]] = {}

    def encode(self, tasks: Sequence[Task]) -> list[bytes]:
        known = self._known
        return [
            found[1] if (found := known.get(id(task))) is not None and found[0]() is task else self._encode(task) for task in tasks
        ]

    def _encode(self, task: Task) -> bytes:
        data = encode_value({"status": task.status, **task.model_dump(mode="json", exclude_defaults=True)})
        number, known = id(task), self._known
        known[number] = weakref.ref(task, lambda _gone: known.pop(number, None)), data
        return data


_tasks = _EncodedTasks()


class EncodedLasting:
    """The last encoding of each group's lasting fields, for each way in which its members are known to play secret roles.

    Those of a group go when it ends; before that those that are oldest, where they are too many, or too large.
    """

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._known: dict[_Key, _Known] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    def encode(self, state: GroupState) -> bytes:
        """Return them encoded."""
        # Compared are, nearly always, the same objects: this looks at nothing in them. Those of a head that was read anew are only
        # equal, so they are the ones to compare with from then on.
        fields = state.comm_id, state.goal_id, state.user, state.owner, state.members, state.limits, state.depth, state.parent
        key = state.comm_id, tuple([member.roles for member in state.members])
        known = self._known.get(key)
        is_known, is_last = known is not None and known[0] == fields, state.phase.is_terminal
        data = known[1] if known and is_known else encode_items(state.model_dump(mode="json", include=_LASTING))
        if is_last or not is_known:
            self._forget(key)
        if not (is_last or is_known):
            self._keep(key, (fields, data))
        return data

    def _forget(self, key: _Key) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self.bytes -= _taken_by(known)

    def _keep(self, key: _Key, known: _Known) -> None:
        self.bytes += _taken_by(known)
        while self._known and (len(self._known) >= self._most or self.bytes > self._most_bytes):
            self._forget(next(iter(self._known)))
        self._known[key] = known


def _taken_by(known: _Known) -> int:
    return len(known[1]) + state_bytes(len(known[1]))


_lasting = EncodedLasting()


def encode_state(state: GroupState) -> bytes:
    """Encode a state, so that it decodes to the same."""
    changing = {**state.model_dump(mode="json", exclude=_APART), "tasks": None}
    head = encode_map_head(len(_LASTING) + len(changing))
    return head + _lasting.encode(state) + encode_items(changing)[:-1] + encode_list(_tasks.encode(state.tasks))
