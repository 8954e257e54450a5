"""Goals and groups as lists show them: filters, rows and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ioa.group.requests import GroupSnapshot
from ioa.protocol.codec import encode_value
from ioa.protocol.goals import GoalRecord, GoalResult, Reason
from ioa.protocol.ids import GoalId, GoalName, UserId
from ioa.protocol.labels import bears
from ioa.protocol.messages import Phase

AnyGoal = GoalId | GoalName
"""A goal of the caller by its id, or of any user by its full name."""

PAGE_GOALS = 50
"""Default number of goals of a page of a list."""
PAGE_BYTES = 500_000
"""Behind how many bytes a page of a list ends, as its records, results and groups are stored: decoded they take up to thirty times
as much. Fifty goals as people launch them have a quarter of it."""
MOST_LOOKED_AT = 1_000
"""Maximum goals that are read for a page."""


GoalPhase = Phase | Literal["waiting"]
"""The phase of a goal: that of its group, or `waiting` without a group."""

PHASES_OF_GOALS: Sequence[str] = ("waiting", *Phase)
"""All phases of goals."""


@dataclass(frozen=True)
class GoalFilter:
    """Which goals of a list are wanted.

    Attributes:
        open_only: Only those that have not ended.
        labels: Only those that bear all of these.
        phase: Only those that stand there.
        user: Only goals of this user.
    """

    open_only: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    phase: GoalPhase | None = None
    user: UserId | None = None

    @property
    def is_of_open_ones(self) -> bool:
        """Whether none that has ended is wanted."""
        return self.open_only or self.phase not in (None, Phase.CONCLUDED, Phase.FAILED, Phase.CANCELLED)

    @property
    def leaves_out(self) -> bool:
        """Whether more has to be looked at than is wanted."""
        return bool(self.labels) or self.phase is not None or self.user is not None

    def takes(self, record: GoalRecord) -> bool:
        """Whether a goal can be wanted by what is on record."""
        return bears(record.goal.labels, self.labels) and self.user in (None, record.goal.user)

    def wants(self, row: GoalStatus) -> bool:
        """Whether a goal is wanted, of those that can be."""
        return not (self.open_only and row.result is not None) and self.phase in (None, row.phase)


ALL_GOALS = GoalFilter()


@dataclass(frozen=True)
class GoalStatus:
    """A goal, the group that works for it if one was opened, and its result if it has ended.

    In a list `standing` is None for a goal with a result, and has no charter. Without its team neither has the record one.
    """

    record: GoalRecord
    standing: GroupSnapshot | None
    result: GoalResult | None

    @property
    def phase(self) -> GoalPhase:
        """Where it stands."""
        if self.result is not None:
            ended = {Reason.CONCLUDED: Phase.CONCLUDED, Reason.CANCELLED: Phase.CANCELLED}
            return ended.get(self.result.reason, Phase.FAILED)
        return "waiting" if self.standing is None else self.standing.state.phase


@dataclass(frozen=True)
class GoalList:
    """Goals, newest first.

    Attributes:
        goals: Those that were asked for.
        before: What to ask for the next page with; None when there is no more.
        looked_at: How many were looked at for it.
    """

    goals: Sequence[GoalStatus]
    before: int | None
    looked_at: int


@dataclass(frozen=True)
class GroupList:
    """The groups of some goals, newest goal first, each before the teams nested in it; policies only of those with people."""

    groups: Sequence[GroupSnapshot]
    before: int | None


def listed_group(group: GroupSnapshot) -> GroupSnapshot:
    """Return a group as lists show it: by its policy is told what is asked of people, and nothing else."""
    if group.charter is None or any(member.human for member in group.state.members):
        return group
    return group.model_copy(update={"charter": group.charter.model_copy(update={"policy": None, "cast": ()})})


def listed_bytes(group: GroupSnapshot) -> int:
    """Count a group for a page of a list, as it would be sent: of its log's entries, which have more, no more is kept."""
    return len(encode_value(group.model_dump(mode="json")))
