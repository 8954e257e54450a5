"""Read requests of users and operators: goals, groups, log pages, dead letters and the audit log.

Group setup answers them. A reply fits into one message; a page that ends early contains the cursor of the next page. The replies
about goals and groups are in `ioa.group.goal_lists`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.goals import Labels
from ioa.protocol.ids import CommIdField, GoalIdField, UserId, UserIdField
from ioa.protocol.model import Carrier, Model
from ioa.protocol.operation.audit import AuditLine
from ioa.protocol.operation.dead_letters import DeadLetter
from ioa.protocol.usage import Count

MAX_LISTED, MAX_PAGE_ENTRIES = 1_000, 500
"""Maximum rows of a list, and entries of a log page."""
MAX_PAGE_BYTES, MAX_LOG_PAGE_BYTES = 900_000, MAX_PAYLOAD_BYTES - 20_000
"""Maximum bytes of the documents of a list, or of a log page, that contains more than one document."""

Place = Annotated[int, Field(ge=0, le=2**63 - 1)]
Listed = Annotated[int, Field(ge=1, le=MAX_LISTED)]
GoalPart = Literal["record", "standing", "launch", "result"]
"""A document of a goal: its record, the state of its group without charter, the log's first entry, and its result."""


class GoalReader(NamedTuple):
    """The caller of a read request, and whether it may read the goals of all users."""

    user: UserId
    reads_all: bool

    @property
    def owner(self) -> UserId | None:
        """The user whose goals the caller may read; None: all users."""
        return None if self.reads_all else self.user


class ListGoals(Model):
    """List goals, newest first; at most 1,000 goals are examined for a page.

    Attributes:
        before: Where the previous page ended; None lists the newest goals.
        open_only: Only goals that have not ended.
        labels: Only goals with all of these labels.
        phase: Only goals in this phase, or `waiting`.
        owner: Only goals of this user.
    """

    limit: Listed = 50
    before: Place | None = None
    open_only: bool = False
    labels: Labels = Field(default_factory=dict)
    phase: Annotated[str, Field(max_length=40)] | None = None
    owner: UserIdField | None = None


class GetGoal(Model):
    """Read documents of a goal, named by its user and id, or by the beginning of its id.

    Attributes:
        start: The beginning of an id, or `user/id`. Whole ids are found among all goals, beginnings among the newest.
        user: The goal's user, with `goal_id`.
        parts: The documents to read.
    """

    start: Annotated[str, Field(max_length=200)] = ""
    user: UserIdField | None = None
    goal_id: GoalIdField | None = None
    parts: Annotated[tuple[GoalPart, ...], Field(max_length=4)] = ()

    @model_validator(mode="after")
    def _names_a_goal(self) -> Self:
        if (self.user is None) != (self.goal_id is None) or bool(self.start) == (self.user is not None):
            raise ValueError("either start, or user and goal_id")
        return self


class ListGroups(Model):
    """List the groups of goals, newest goal first, nested groups after their parents; or find one group.

    Attributes:
        limit: Maximum number of goals.
        before: Where the previous page ended.
        open_only: Only groups that have not ended.
        owner: Only groups that work for this user.
        comm_id: Find this group, with its charter.
    """

    limit: Listed = 50
    before: Place | None = None
    open_only: bool = False
    owner: UserIdField | None = None
    comm_id: CommIdField | None = None


class ReadLog(Model):
    """Read entries of a group's log.

    Attributes:
        comm_id: The group.
        after: The first entries after this sequence, unless `before` is set.
        before: The last entries before this sequence.
        limit: Maximum number of entries.
        max_bytes: Maximum bytes of the entries, unless the first entry is larger.
    """

    comm_id: CommIdField
    after: Place = 0
    before: Place | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_ENTRIES)] = MAX_PAGE_ENTRIES
    max_bytes: Annotated[int, Field(ge=1, le=MAX_LOG_PAGE_BYTES)] = MAX_LOG_PAGE_BYTES


class LogPage(Carrier):
    """Sequences and sizes of entries, by rising sequence, and their encodings in `data`. `more`: a limit ended the page."""

    entries: tuple[tuple[Place, Count], ...]
    more: bool = False

    def documents(self) -> Iterator[tuple[int, bytes]]:
        """Yield the sequence and the encoding of each entry."""
        start = 0
        for seq, size in self.entries:
            yield seq, self.data[start : start + size]
            start += size


class ReadDeadLetters(Model):
    """Read dead letters without their messages, newest first; or the whole letter `seq`."""

    limit: Listed = 50
    before: Place | None = None
    seq: Place | None = None


class DeadPage(Carrier):
    """Dead letters, newest first; with one letter that was asked for by `seq`, its message is in `data`.

    `before` begins the next page; None on the last page.
    """

    letters: tuple[DeadLetter, ...]
    before: Place | None = None


class ReadAudit(Model):
    """Read lines of the audit log, newest first."""

    limit: Annotated[int, Field(ge=1, le=500)] = 500
    before: Place | None = None


class AuditPage(Model):
    """Lines with their numbers. The next page has lines before `before`, None if there are none."""

    lines: tuple[tuple[int, AuditLine], ...]
    before: Place | None = None
