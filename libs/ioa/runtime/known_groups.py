"""Cache of a process for the groups that it records: at most `_MAX_GROUPS`, the least recently used is removed first."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime

from ioa.group.events import GroupLaunched, Unheard
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.policy import Policy

_MAX_GROUPS = 4_096


@dataclass
class KnownGroup:
    """Cached data of a group.

    Attributes:
        lock: Held for each append of this process.
        head: The last entry, which may be stale; a launch without its event. None: unknown, or the group has ended.
        policy: The policy of the group, if it has one and it is known.
        armed: The earliest scheduled timer.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    head: StoredEntry | None = None
    policy: Policy | None = None
    armed: datetime | None = None

    def remember(self, head: StoredEntry | None) -> None:
        """Cache the last entry, unless the group has ended."""
        if head is not None and head.entry.state.phase.is_terminal:
            head = self.policy = None
        if head is not None and isinstance(head.entry.event, GroupLaunched):
            launch = Unheard(at=head.entry.event.at)  # the event may contain a large policy
            head = replace(head, entry=head.entry.model_copy(update={"event": launch}))
        self.head = head


class KnownGroups:
    """Caches the groups that this process records. Above `_MAX_GROUPS`, the least recently used unlocked group is removed."""

    def __init__(self) -> None:
        self._groups: OrderedDict[CommId, KnownGroup] = OrderedDict()

    def find(self, comm_id: CommId) -> KnownGroup | None:
        """Return a cached group, without counting this as a use."""
        return self._groups.get(comm_id)

    def of(self, comm_id: CommId) -> KnownGroup:
        """Return a group, which is added if it is not cached. A locked group is not removed."""
        group = self._groups.get(comm_id)
        if group is None:
            group = self._groups[comm_id] = KnownGroup()
        self._groups.move_to_end(comm_id)
        if len(self._groups) > _MAX_GROUPS:
            unused = (one for one, known in self._groups.items() if known is not group and not known.lock.locked())
            self._groups.pop(next(unused, CommId("")), None)
        return group

    def forget(self, *, heads: bool) -> None:
        """Remove all cached timers, and optionally all heads."""
        for group in self._groups.values():
            group.armed = None
            if heads:
                group.head = None
