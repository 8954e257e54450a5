"""What a process remembers of the groups that it records: as many as there is room for, those first that were used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from ioa.group.events import GroupLaunched, Unheard
from ioa.group.in_memory import policy_bytes, state_bytes
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.policy import Policy
from ioa.runtime.priority_lock import PriorityLock

_MOST = 10_000
_MOST_BYTES = 128_000_000
"""What all remembered heads may take up in memory."""
_MOST_POLICY_BYTES = 128_000_000
"""What all remembered policies may. The largest go first, so that a few dozen large ones keep no small one from being remembered;
what is not is read again."""


class _KnownPolicy(NamedTuple):
    """A policy, and how much of memory it takes up."""

    policy: Policy
    size_bytes: int


@dataclass
class KnownGroup:
    """What is remembered of one: its head, which may be stale, and the earliest timer that was armed.

    Of a launch, which may hold a whole policy, the state alone is: what follows goes by that.
    """

    lock: PriorityLock = field(default_factory=PriorityLock)
    head: StoredEntry | None = None
    armed: datetime | None = None
    head_bytes: int = 0
    """How large the head was that was looked at last, also where it is not remembered."""
    answered: int = 0
    """The last turn of which a nested team was told what was answered to its question: that is owed until its task is closed."""


class KnownGroups:
    """All of them."""

    def __init__(self) -> None:
        self._groups: OrderedDict[CommId, KnownGroup] = OrderedDict()
        self.bytes = 0
        """What all remembered heads take up in memory."""
        self._policies: dict[CommId, _KnownPolicy] = {}
        self.policy_bytes = 0
        """What all remembered policies do."""

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
        if len(self._groups) > _MOST or self.bytes > _MOST_BYTES:
            self._make_room(group)
        return group

    def _make_room(self, used: KnownGroup) -> None:
        """Forget what was used longest ago. Those that are locked are passed over: one that is for long would keep all others."""
        goes = (one for one, group in self._groups.items() if group is not used and not group.lock.locked())
        forgotten, left, size = list[CommId](), len(self._groups), self.bytes
        while (left > _MOST or size > _MOST_BYTES) and (comm_id := next(goes, None)) is not None:
            forgotten.append(comm_id)
            left, size = left - 1, size - _taken_by(self._groups[comm_id].head)
        for comm_id in forgotten:
            self.remember(self._groups[comm_id], None)
            self._forget_policy(comm_id)
            del self._groups[comm_id]

    def remember(self, group: KnownGroup, head: StoredEntry | None) -> None:
        """Keep a group's head in memory, unless it is the last one: hardly anybody asks for that again."""
        if head is not None:
            group.head_bytes = head.size_bytes
        if head is not None and head.entry.state.phase.is_terminal:
            self._forget_policy(head.entry.state.comm_id)
            head = None
        if head is not None and isinstance(head.entry.event, GroupLaunched):
            at = head.entry.event.at
            head = replace(head, entry=head.entry.model_copy(update={"event": Unheard(at=at)}))
        self.bytes += _taken_by(head) - _taken_by(group.head)
        group.head = head

    def policy(self, comm_id: CommId) -> Policy | None:
        """Return the policy of a group, if it is remembered."""
        known = self._policies.get(comm_id)
        return None if known is None else known.policy

    def remember_policy(self, comm_id: CommId, policy: Policy, size_bytes: int) -> None:
        """Keep the policy of a group in memory, which came with so many bytes; the largest make room, of those the oldest."""
        self._forget_policy(comm_id)
        known = self._policies[comm_id] = _KnownPolicy(policy, policy_bytes(size_bytes))
        self.policy_bytes += known.size_bytes
        while self.policy_bytes > _MOST_POLICY_BYTES:
            self._forget_policy(max(self._policies, key=lambda one: self._policies[one].size_bytes))

    def _forget_policy(self, comm_id: CommId) -> None:
        known = self._policies.pop(comm_id, None)
        self.policy_bytes -= 0 if known is None else known.size_bytes

    def forget_heads(self) -> None:
        """Trust no head and no timer of before."""
        for group in self:
            self.remember(group, None)
            group.answered = 0
            group.armed = None

    def forget_timers(self) -> None:
        """Trust no timer of before."""
        for group in self:
            group.armed = None


def _taken_by(head: StoredEntry | None) -> int:
    return 0 if head is None else state_bytes(head.size_bytes)
