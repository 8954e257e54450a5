"""Goals and groups as lists show them: filters, rows and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from ioa.group.events import Entry
from ioa.group.requests import GroupSnapshot
from ioa.group.state import phase_of_end
from ioa.protocol.goals import GoalRecord, GoalReference, GoalResult
from ioa.protocol.ids import GoalName
from ioa.protocol.messages import Phase
from ioa.protocol.model import OMITTED_IF_EMPTY, Model
from ioa.protocol.setup.reads import GoalPart

AnyGoal = str | GoalName
"""A goal of the caller by its id, or of any user by its full name."""

PAGE_GOALS = 50
"""Default number of goals of a page of a list."""
PAGE_BYTES = 500_000
"""Maximum stored bytes of a page of a list. Decoded documents need up to thirty times as much memory."""
MOST_LOOKED_AT = 1_000
"""Maximum goals that are read for a page."""


GoalPhase = Phase | Literal["waiting"]
"""The phase of a goal: the phase of its group, or `waiting` without a group."""

PHASES_OF_GOALS: Sequence[str] = ("waiting", *Phase)
"""All phases of goals."""


class GoalStatus(Model):
    """A goal, the last state of its group if it was opened, and its result if the goal has ended.

    In a list, `standing` is None for a goal with a result, and contains no charter. `lacks_result` marks a row of a reply whose
    result does not fit into a message.
    """

    record: GoalRecord
    standing: GroupSnapshot | None = None
    result: GoalResult | None = None
    lacks_result: Annotated[bool, OMITTED_IF_EMPTY] = False

    @property
    def phase(self) -> GoalPhase:
        """The phase of the goal."""
        if self.result is not None:
            return phase_of_end(self.result.reason)
        return "waiting" if self.standing is None else self.standing.state.phase


class GoalList(Model):
    """The matching goals among `looked_at` ones, newest first. `before` is the cursor of the next page; None on the last page."""

    goals: tuple[GoalStatus, ...]
    before: int | None
    looked_at: int


class GroupList(Model):
    """Groups of goals, newest goal first, each parent before its nested groups. Only groups with people contain their policy."""

    groups: tuple[GroupSnapshot, ...]
    before: int | None = None


class GoalFound(GoalReference):
    """The requested documents of a goal; None if one does not exist. Request those in `left_out` again: they did not fit.

    `standing` contains no charter. `launch` is the first entry of the group's log. `removed` is the outcome of a goal whose other
    documents were removed.
    """

    record: GoalRecord | None = None
    standing: GroupSnapshot | None = None
    launch: Entry | None = None
    result: GoalResult | None = None
    left_out: tuple[GoalPart, ...] = ()
    removed: str = ""


def listed_group(group: GroupSnapshot) -> GroupSnapshot:
    """Return a group without its policy, unless the group has people: lists show their questions by the policy."""
    if group.charter is None or any(member.human for member in group.state.members):
        return group
    return group.model_copy(update={"charter": group.charter.model_copy(update={"policy": None, "cast": ()})})
