"""Limits of one group: the tasks that it assigns, and the bytes of its log.

The ledger checks these limits, not the machine: they are configuration and may change while a group runs, and a log is replayed by
the machine's rules alone. A message that ends the group is always accepted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ioa.group.events import Event, Kind, MemberJoined, Said, SubgroupOpened, name_of
from ioa.group.legality import legal_kinds
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState
from ioa.ports.group_log import StoredEntry
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    InformTaskResult,
    Pass,
    SyncTaskAssignment,
)
from ioa.protocol.policy import Policy

_RESERVED_PART = 8
"""The last 1/8 of a log is reserved for results of tasks and passes."""
_RESERVED_TURNS_PART = 10
"""A group keeps 1/10 of its turns when it opens a nested group: without turns it ends, and cancels its tasks."""
_ENDS = (ConcludeGroupDiscussion, Conclusion)
"""Messages that are accepted even if the log is full."""
_RESULTS = (InformTaskResult, Pass)
"""Messages that are accepted in the reserved part of a log."""


@dataclass(frozen=True)
class GroupLimits:
    """Limits of one group. A nested group has the limits of a group.

    Attributes:
        tasks: Maximum tasks that a group assigns in total.
        log_bytes: Maximum bytes of a group's log.
    """

    tasks: int = 256
    log_bytes: int = 64_000_000

    def check(self, event: Event, head: StoredEntry | None, after: GroupState, policy: Policy | None) -> None:
        """Reject an event that exceeds a limit.

        Args:
            event: A legal event.
            head: The last entry of the group's log; None for a launch, which has no limit.
            after: The state after the event.
            policy: The policy of the group.

        Raises:
            IllegalEventError: A limit is exceeded. The error lists the legal messages.
        """
        if head is None:
            return
        room = self.log_bytes - self.log_bytes // _RESERVED_PART
        match event:
            case Said():
                self._check_tasks(event, head, policy)
                payload = event.message.payload
                if not isinstance(payload, _ENDS):
                    most = self.log_bytes if isinstance(payload, _RESULTS) else room
                    self._check_log(head, most, self._legal(event, head, policy) if head.log_bytes > most else ())
            case MemberJoined():
                self._check_log(head, room)
            case SubgroupOpened():
                self._check_log(head, room)
                if after.turns_left < (reserved := after.limits.max_turns // _RESERVED_TURNS_PART):
                    why = f"Too little of the budget is left for a nested group: a group keeps {reserved} of its turns."
                    raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)
            case _:
                pass

    def _check_tasks(self, said: Said, head: StoredEntry, policy: Policy | None) -> None:
        payload, state = said.message.payload, head.entry.state
        if not isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            return
        assigned = len(state.tasks) + sum([folded.total for folded in state.folded])
        if assigned + len(payload.tasks) > self.tasks:
            why = f"This group has assigned {assigned} tasks; {self.tasks:,} is the limit. Continue without tasks, or conclude."
            raise IllegalEventError(RejectionCode.TOO_MANY_TASKS, why, legal=self._legal(said, head, policy))

    def _check_log(self, head: StoredEntry, most: int, legal: tuple[str, ...] = ()) -> None:
        if head.log_bytes > most:
            why = (
                f"The log of this group has {head.log_bytes / 1e6:,.1f} MB; {self.log_bytes / 1e6:,.1f} MB is the limit. Conclude."
            )
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why, legal=legal)

    def _legal(self, said: Said, head: StoredEntry, policy: Policy | None) -> tuple[str, ...]:
        accepted: tuple[Kind, ...] = (*_ENDS, *_RESULTS) if head.log_bytes <= self.log_bytes else _ENDS
        kinds = legal_kinds(head.entry.state, said.message.header.sender, said.at, policy)
        return tuple([name_of(kind) for kind in kinds if kind in accepted])


DEFAULT_GROUP_LIMITS = GroupLimits()
