"""What a process remembers of the groups that it records: as many as there is room for, those first that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.policy import Policy
from ioa.runtime.priority_lock import PriorityLock

_MOST = 10_000
_MOST_BYTES = 32_000_000
"""What all remembered heads may have as entries; decoded, each takes about ten times as much."""


@dataclass
class KnownGroup:
    """What is remembered of one: its head, which may be stale, the earliest timer that was armed, and its policy."""

    lock: PriorityLock = field(default_factory=PriorityLock)
    head: StoredEntry | None = None
    armed: datetime | None = None
    policy: Policy | None = None
    head_bytes: int = 0
    """How large the head was that was looked at last, also where it is not remembered."""


class KnownGroups:
    """All of them."""

    def __init__(self) -> None:
        self._groups: OrderedDict[CommId, KnownGroup] = OrderedDict()
        self.bytes = 0
        """What all remembered heads have as entries."""

    def __iter__(self) -> Iterator[KnownGroup]:
        return iter(self._groups.values())

    def find(self, comm_id: CommId) -> KnownGroup | None:
        """Return what is remembered of a group, which does not count as used; None if nothing is."""
        return self._groups.get(comm_id)

    def of(self, comm_id: CommId) -> KnownGroup:
        """Return what is remembered of a group, to be locked or changed at once; what was used longest ago is forgotten."""
        group = self._groups.get(comm_id)
        if group is None:
            group = self._groups[comm_id] = KnownGroup()
        self._groups.move_to_end(comm_id)
        while len(self._groups) > _MOST or self.bytes > _MOST_BYTES:
            oldest = next(iter(self._groups.values()))
            if oldest is group or oldest.lock.locked():
                break
            self.remember(oldest, None)
            self._groups.popitem(last=False)
        return group

    def remember(self, group: KnownGroup, head: StoredEntry | None) -> None:
        """Keep a group's head in memory, unless it is the last one: hardly anybody asks for that again."""
        if head is not None:
            group.head_bytes = head.size_bytes
        if head is not None and head.entry.state.phase.is_terminal:
            head = None
        self.bytes += (head.size_bytes if head else 0) - (group.head.size_bytes if group.head else 0)
        group.head = head

    def forget_heads(self) -> None:
        """Trust no head and no timer of before."""
        for group in self:
            self.remember(group, None)
            group.armed = None

    def forget_timers(self) -> None:
        """Trust no timer of before."""
        for group in self:
            group.armed = None
