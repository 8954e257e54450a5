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
        if head is None or not isinstance(event, Said | MemberJoined | SubgroupOpened):
            return
        payload, state = event.message.payload if isinstance(event, Said) else None, head.entry.state
        accepted: tuple[Kind, ...] = (*_ENDS, *_RESULTS) if head.log_bytes <= self.log_bytes else _ENDS
        new = len(payload.tasks) if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment) else 0
        if new and (assigned := len(state.tasks) + sum([folded.total for folded in state.folded])) + new > self.tasks:
            code = RejectionCode.TOO_MANY_TASKS
            why = f"This group has assigned {assigned} tasks; {self.tasks:,} is the limit. Continue without tasks, or conclude."
        elif head.log_bytes > self.log_bytes - self.log_bytes // _RESERVED_PART and not isinstance(payload, accepted):
            code, size, most = RejectionCode.TOO_LITTLE_LEFT, head.log_bytes / 1e6, self.log_bytes / 1e6
            why = f"The log of this group has {size:,.1f} MB; {most:,.1f} MB is the limit. Conclude."
        elif isinstance(event, SubgroupOpened) and after.turns_left < (kept := after.limits.max_turns // _RESERVED_TURNS_PART):
            code = RejectionCode.TOO_LITTLE_LEFT
            why = f"Too little of the budget is left for a nested group: a group keeps {kept} of its turns."
        else:
            return
        kinds = legal_kinds(state, event.message.header.sender, event.at, policy) if isinstance(event, Said) else ()
        raise IllegalEventError(code, why, legal=tuple([name_of(kind) for kind in kinds if kind in accepted]))


DEFAULT_GROUP_LIMITS = GroupLimits()
