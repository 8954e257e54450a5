"""What one group may take of the store that all share: so many tasks in all, and so many bytes of log with its nested teams.

Routers refuse what goes beyond it, and not the machine: it is the operator's to say and may change while a group lasts, while logs
are replayed by the machine's rules. Whoever is refused may still bring the group to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ioa.group.events import Event, Kind, Said, SubgroupOpened, name_of
from ioa.group.machine import legal_kinds
from ioa.group.rejection import IllegalEventError, RejectionCode
from ioa.group.state import GroupState, Loan
from ioa.group.tasks import open_bytes
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import CommId
from ioa.protocol.messages import (
    AskUser,
    AsyncTaskAssignment,
    ConcludeGroupDiscussion,
    Conclusion,
    Discussion,
    InformTaskResult,
    Pass,
    SyncTaskAssignment,
    TaskQuestion,
)
from ioa.protocol.policy import FormField, Policy

_KEPT = 8
"""One part of so many of the log is kept for the results of tasks."""
_KEPT_TURNS = 10
"""One part of so many of its turns a group does not lend, as it keeps a tenth of its tokens and money from each task."""
_LENT_PART = 2
"""A nested team is lent one part of so many of the log that its part of the turns comes to."""
_LEAST_LENT = 1_000_000
"""How many bytes of log it is lent at least, if that is no more than an eighth."""
_FORM_BYTES = 6_000
"""What the names and options of a question may have. Until it is answered each entry carries them twice, beside all else."""
_OPEN_BYTES, _TASK_BYTES = 100_000, 400
"""What open tasks take of each entry, with what they ask; or, if that is more, so much for each that may be given out."""
_BEGINS = (SyncTaskAssignment, AsyncTaskAssignment, TaskQuestion, AskUser)
_ENDS = (ConcludeGroupDiscussion, Conclusion)
"""What leads to the end of a group: there is always room for it, and it comes once."""
_GOES_ON = (InformTaskResult, Pass)
"""What is taken until the last eighth of a log is used up. A pass ends nothing by itself: two members, or one alone whose model is
away, may pass for as long as the goal lasts, and each pass is an entry with the whole state."""
CLOSES = (InformTaskResult, *_ENDS)
"""What leads to the end of a task or group: who has filled the logs of all is not put off with it."""


class LogSize(Protocol):
    """What a group's log holds, and what it may hold; see `StoredEntry`."""

    @property
    def log_bytes(self) -> int:
        """How much it holds."""

    @property
    def log_most(self) -> int | None:
        """How much it may hold, if it was lent."""


@dataclass(frozen=True)
class GroupQuota:
    """How many tasks a group may give out in all, and how many bytes the entries of its log may have together.

    A nested team has what its parent lends it, and what it has not used goes back: a goal's groups together have no more than one.
    """

    tasks: int = 256
    log_bytes: int = 64_000_000

    def check(self, said: Said, head: StoredEntry, after: GroupState, policy: Policy | None) -> None:
        """Refuse what the group has no room for; what leads to its end is always taken.

        Args:
            said: What a member says, which is legal.
            head: Where the group stands, and what its log holds.
            after: Where the group would stand then.
            policy: What leads the group.

        Raises:
            IllegalEventError: There is no room for it. It says what would be legal.
        """
        payload, state = said.message.payload, head.entry.state
        if isinstance(payload, SyncTaskAssignment | AsyncTaskAssignment):
            given = len(state.tasks) + sum([folded.total for folded in state.folded])
            if given + len(payload.tasks) > self.tasks:
                why = f"This group has given out {given} tasks, and a group may give out {self.tasks:,}"
                raise self._refusal(RejectionCode.TOO_MANY_TASKS, f"{why}. Do without, or conclude.", said, head, policy)
        if isinstance(payload, _BEGINS) and (size := open_bytes(after)) > (most := max(_OPEN_BYTES, _TASK_BYTES * self.tasks)):
            why = f"Open tasks, and what is asked, would take {size:,} bytes of each entry, and {most:,} are the most"
            legal = tuple(map(name_of, _legal(said, state, policy)))
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, f"{why}. Wait for results, or use fewer words.", legal=legal)
        if isinstance(payload, Discussion) and (size := _bytes_of(payload.question)) > _FORM_BYTES:
            why = f"What the question is filled in with has {size:,} bytes, and {_FORM_BYTES:,} are the most. Ask in fewer words."
            raise IllegalEventError(RejectionCode.BAD_FORM, why, legal=tuple(map(name_of, _legal(said, state, policy))))
        room = self.most(head) if isinstance(payload, _GOES_ON) else self._room(head)
        if head.log_bytes > room and not isinstance(payload, _ENDS):
            why = f"{self._held(head)}. Conclude."
            raise self._refusal(RejectionCode.TOO_LITTLE_LEFT, why, said, head, policy)

    def check_invited(self, head: StoredEntry) -> None:
        """Refuse another member where the log is full.

        Raises:
            IllegalEventError: There is no room for it.
        """
        if head.log_bytes > self._room(head):
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, f"{self._held(head)}.")

    def check_lent(self, head: StoredEntry, after: GroupState, lent_bytes: int) -> None:
        """Refuse to lend a nested team what the group itself needs: with no turns left it ends, and cancels others' tasks.

        Args:
            head: Where the group stands, and what its log holds.
            after: Where the group would stand then.
            lent_bytes: How much of its log it would lend.

        Raises:
            IllegalEventError: Less than a tenth of its turns would be left, or its log would be full.
        """
        if head.log_bytes + lent_bytes > self._room(head):
            why = f"Too little room is left for a nested team. {self._held(head)}; a nested team needs {lent_bytes / 1e6:,.1f}."
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)
        if after.turns_left < (kept := after.limits.max_turns // _KEPT_TURNS):
            why = f"Too little of the budget is left for a nested team: a group keeps {kept} of its turns."
            raise IllegalEventError(RejectionCode.TOO_LITTLE_LEFT, why)

    def lent(self, parent: StoredEntry, loan: Loan) -> int:
        """Return how much of its log a group lends a nested team, by the turns that it lends: as long as that lasts, the same."""
        part = self.most(parent) * loan.turns // (_LENT_PART * parent.entry.state.limits.max_turns)
        return max(part, min(_LEAST_LENT, self.most(parent) // _KEPT))

    def lent_to(self, nested: CommId, parent: StoredEntry | None) -> int | None:
        """Return how much the log of a team may hold that is about to begin; None if it is nobody's nested team."""
        loan = None if parent is None else parent.entry.state.loan(nested)
        return None if parent is None or loan is None else self.lent(parent, loan)

    def held(self, head: StoredEntry, event: Event, after: GroupState, nested: LogSize | None) -> int:
        """Return what a group's log holds before an entry, with what it lends by its event or gets back.

        Args:
            head: Where the group stands.
            event: What happens.
            after: Where the group stands then.
            nested: The log of the nested team that has ended by it; None if none has.
        """
        if isinstance(event, SubgroupOpened) and (loan := after.loan(event.subgroup)) is not None:
            return head.log_bytes + self.lent(head, loan)
        if nested is not None and nested.log_most is not None:
            return max(0, head.log_bytes - nested.log_most + nested.log_bytes)
        return head.log_bytes

    def held_by_ended(self, head: StoredEntry) -> int:
        """Return what a group's log holds with those of its nested teams that have ended, without what it lends to others."""
        return max(0, head.log_bytes - sum([self.lent(head, loan) for loan in head.entry.state.loans]))

    def most(self, head: StoredEntry) -> int:
        """Return how much a group's log may hold, with those of its nested teams."""
        return self.log_bytes if head.log_most is None else head.log_most

    def _room(self, head: StoredEntry) -> int:
        return self.most(head) - self.most(head) // _KEPT

    def _held(self, head: StoredEntry) -> str:
        return f"This group's log holds {head.log_bytes / 1e6:,.1f} MB, and may hold {self.most(head) / 1e6:,.1f}"

    def _refusal(self, code: RejectionCode, why: str, said: Said, head: StoredEntry, policy: Policy | None) -> IllegalEventError:
        taken: tuple[Kind, ...] = (*_ENDS, *_GOES_ON) if head.log_bytes <= self.most(head) else _ENDS
        legal = [kind for kind in _legal(said, head.entry.state, policy) if kind in taken]
        return IllegalEventError(code, why, legal=tuple(map(name_of, legal)))


def _legal(said: Said, state: GroupState, policy: Policy | None) -> Sequence[Kind]:
    return legal_kinds(state, said.message.header.sender, said.at, policy)


def _bytes_of(form: Iterable[FormField]) -> int:
    return sum([len(word.encode()) for field in form for word in (field.name, *field.options)])


DEFAULT_GROUP_QUOTA = GroupQuota()
