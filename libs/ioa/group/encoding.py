"""Encoding of a group's state, which each entry carries.

Open tasks are most of a large state, and a step changes few of them: their encodings are remembered. Fields of a task that have
their default are left out.
"""

from __future__ import annotations

import weakref

from ioa.group.state import GroupState, Task
from ioa.protocol.codec import encode_around, encode_list, encode_value

_known: dict[int, tuple[weakref.ref[Task], bytes]] = {}
"""Encodings by the identity of a task, which never changes; each is removed with its task."""


def encode_state(state: GroupState) -> bytes:
    """Encode a state, so that it decodes to the same."""
    fields = {**state.model_dump(mode="json", exclude={"tasks"}), "tasks": None}
    return encode_around(fields, encode_list([_encoded(task) for task in state.tasks]))


def _encoded(task: Task) -> bytes:
    number = id(task)
    known = _known.get(number)
    if known is not None and known[0]() is task:
        return known[1]
    data = encode_value({"status": task.status, **task.model_dump(mode="json", exclude_defaults=True)})
    _known[number] = weakref.ref(task, lambda _gone: _known.pop(number, None)), data
    return data
