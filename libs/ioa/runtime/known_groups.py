"""Memory of a process about the groups that it records: at most `_MAX_GROUPS`, least recently used first out."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import datetime

from ioa.group.events import GroupLaunched, Unheard
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.policy import Policy
from ioa.runtime.priority_lock import PriorityLock

_MAX_GROUPS = 4_096


@dataclass
class KnownGroup:
    """Memory about one group.

    Attributes:
        lock: Held while the group is taken a step further.
        head: The last entry, which may be stale; of a launch without its event. None: unknown, or the group has ended.
        policy: The policy of the group, if it has one and it is known.
        armed: The earliest timer that is armed.
        answered: The last turn of which the group, a nested one, was sent the answer to its question.
    """

    lock: PriorityLock = field(default_factory=PriorityLock)
    head: StoredEntry | None = None
    policy: Policy | None = None
    armed: datetime | None = None
    answered: int = 0

    def remember(self, head: StoredEntry | None) -> None:
        """Keep the head, unless the group has ended: then it is hardly read again."""
        if head is not None and head.entry.state.phase.is_terminal:
            head = self.policy = None
        if head is not None and isinstance(head.entry.event, GroupLaunched):
            launch = Unheard(at=head.entry.event.at)  # the event may contain a large policy
            head = replace(head, entry=head.entry.model_copy(update={"event": launch}))
        self.head = head


class KnownGroups:
    """All of them."""

    def __init__(self) -> None:
        self._groups: OrderedDict[CommId, KnownGroup] = OrderedDict()

    def find(self, comm_id: CommId) -> KnownGroup | None:
        """Return what is known of a group, which does not count as a use; None if nothing is."""
        return self._groups.get(comm_id)

    def of(self, comm_id: CommId) -> KnownGroup:
        """Return what is known of a group, to be locked or changed at once."""
        group = self._groups.get(comm_id)
        if group is None:
            group = self._groups[comm_id] = KnownGroup()
        self._groups.move_to_end(comm_id)
        if len(self._groups) > _MAX_GROUPS:
            self._forget_oldest(group)
        return group

    def _forget_oldest(self, used: KnownGroup) -> None:
        """Forget the least recently used group that is not locked."""
        oldest = (comm_id for comm_id, group in self._groups.items() if group is not used and not group.lock.locked())
        if (comm_id := next(oldest, None)) is not None:
            del self._groups[comm_id]

    def forget_heads(self) -> None:
        """Forget all heads and timers."""
        for group in self._groups.values():
            group.head = group.armed = None
            group.answered = 0

    def forget_timers(self) -> None:
        """Forget all timers."""
        for group in self._groups.values():
            group.armed = None
