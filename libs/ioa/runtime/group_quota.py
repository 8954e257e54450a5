"""What one group may take of the store that all groups share: so many tasks in all, and so many bytes of log; and what it lends.

Routers refuse what goes beyond it, and not the machine: it is the operator's to say and may change while a group lasts, while logs
are replayed by the machine's rules. Whoever is refused may still bring the group to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ioa.group.events import Kind, Said, name_of
from ioa.group.machine import legal_kinds
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState
from ioa.protocol.messages import (
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskResult,
    Pass,
    SyncTaskAssignment,
)
from ioa.protocol.policy import FormField, Policy

_KEPT = 8
"""One part of so many of the log is kept for the results of tasks."""
_KEPT_TURNS = 10
"""One part of so many of its turns a group does not lend, as it keeps a tenth of its tokens and money from each task."""
_FORM_BYTES = 6_000
"""What the names and options of a question may have. Until it is answered each entry carries them twice, beside all else."""
_ENDS = (ConcludeGroupDiscussion, Conclusion, Pass)
_CLOSES = (InformTaskResult, *_ENDS)


@dataclass(frozen=True)
class GroupQuota:
    """How many tasks a group may give out in all, and how many bytes the entries of its log may have together."""

    tasks: int = 256
    log_bytes: int = 64_000_000

    def check(self, said: Said, state: GroupState, log_bytes: int, policy: Policy | None) -> None:
        """Refuse what the group has no room for; what leads to its end is always taken.

        Args:
            said: What a member says, which is legal.
            state: Where the group stands.
            log_bytes: What its log holds.
            policy: What leads the group.

        Raises:
            IllegalEventError: There is no room for it. It says what would be legal.
        """
        payload = said.message.payload
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            given = len(state.tasks) + sum([folded.total for folded in state.folded])
            if given + len(payload.tasks) > self.tasks:
                why = f"This group has given out {given} tasks, and a group may give out {self.tasks:,}"
                raise self._refusal(RejectionCode.TOO_MANY_TASKS, f"{why}. Do without, or conclude.", said, state, policy)
        if isinstance(payload, Discussion) and (size := _bytes_of(payload.question)) > _FORM_BYTES:
            why = f"What the question is filled in with has {size:,} bytes, and {_FORM_BYTES:,} are the most. Ask in fewer words."
            raise IllegalEventError(RejectionCode.BAD_FORM, why, legal=tuple(map(name_of, _legal(said, state, policy))))
        room = self.log_bytes if isinstance(payload, InformTaskResult) else self.log_bytes - self.log_bytes // _KEPT
        if log_bytes > room and not isinstance(payload, _ENDS):
            why = f"This group's log holds {log_bytes / 1e6:,.1f} MB, and may hold {self.log_bytes / 1e6:,.1f}. Conclude."
            raise self._refusal(RejectionCode.TOO_LITTLE_LEFT, why, said, state, policy)

    @staticmethod
    def check_lent(after: GroupState) -> None:
        """Refuse to lend a nested team turns that the group itself needs: with none left it ends, and cancels others' tasks.

        Args:
            after: Where the group would stand then.

        Raises:
            IllegalEventError: Less than a tenth of its turns would be left.
        """
        if after.turns_left < (kept := after.limits.max_turns // _KEPT_TURNS):
            why = f"Too little of the budget is left for a nested team: a group keeps {kept} of its turns."
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)

    @staticmethod
    def _refusal(code: RejectionCode, why: str, said: Said, state: GroupState, policy: Policy | None) -> IllegalEventError:
        legal = [kind for kind in _legal(said, state, policy) if kind in _CLOSES]
        return IllegalEventError(code, why, legal=tuple(map(name_of, legal)))


def _legal(said: Said, state: GroupState, policy: Policy | None) -> Sequence[Kind]:
    return legal_kinds(state, said.message.header.sender, said.at, policy)


def _bytes_of(form: Iterable[FormField]) -> int:
    return sum([len(word.encode()) for field in form for word in (field.name, *field.options)])


DEFAULT_GROUP_QUOTA = GroupQuota()
