"""What users ask about goals: launching them, waiting for their results, listing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ioa.group.requests import CancelGroup, GroupSnapshot
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact, GoalRecord, GoalResult
from ioa.protocol.ids import GoalId, GoalName, UserId

AnyGoal = GoalId | GoalName
"""A goal: one of one's own by its id, or anybody's by its whole name."""

PAGE_GOALS = 50
"""How many goals a page of a list covers if nobody says."""


@dataclass(frozen=True)
class GoalStatus:
    """A goal, the group that works for it if one was opened, and its result if it has ended.

    In a list `standing` is None for a goal with a result, and has no charter.
    """

    record: GoalRecord
    standing: GroupSnapshot | None
    result: GoalResult | None


@dataclass(frozen=True)
class GoalList:
    """Goals, newest first, and what to ask for the next page with; None when there is no more."""

    goals: Sequence[GoalStatus]
    before: int | None


class GoalClient(Protocol):
    """Goals as their users see them."""

    async def user(self) -> UserId:
        """Tell whose goals are launched here.

        Raises:
            ForbiddenError: Nobody's: this credential launches none.
        """

    async def complete(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalOrder:
        """Give an order an id, unless it has one, and store the files that belong to it; what comes back needs only be launched.

        Raises:
            InvalidInputError: A file cannot be read, or two have the same name.
            UnavailableError: The system does not take it.
        """

    async def launch(self, order: GoalOrder, files: Sequence[Path] = ()) -> GoalId:
        """Complete the order and publish it; returns when it is stored. Launching it again under its id is the same goal.

        Raises:
            InvalidInputError: A file cannot be read, or two have the same name.
            UnavailableError: The system does not take it.
        """

    async def result(self, goal: AnyGoal) -> GoalResult | None:
        """Read a goal's result; None while it has none."""

    async def wait_for_result(self, goal: AnyGoal) -> GoalResult:
        """Wait until the goal has ended, across outages.

        Raises:
            NotFoundError: It ended so long ago that it was removed.
        """

    async def cancel(self, request: CancelGroup, user: UserId | None = None) -> None:
        """Cancel a goal or a group of one's own; an admin says whose it is.

        Raises:
            NotFoundError: There is no such goal or group.
            ForbiddenError: It is somebody else's.
            InvalidInputError: The request names both, or neither.
        """

    async def goal(self, goal: AnyGoal) -> GoalStatus:
        """Look at one goal.

        Raises:
            NotFoundError: There is no such goal, or it was removed.
        """

    async def waiting(self, goal: AnyGoal) -> int:
        """Return how many goals of the same user are not begun, since as many as may be are open."""

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, open_only: bool = False) -> GoalList:
        """List goals on record, newest first, a page at a time.

        Args:
            limit: How many at the most. With `open_only` there may be fewer although there is more.
            before: What the page before said; the newest goals if None.
            open_only: Leave out those that have ended.
        """

    async def find_goal(self, start: str) -> GoalName:
        """Complete the id of a goal from its beginning; of one that is not among the newest only a whole id is found.

        One's own goals come first. `user/id` names one of somebody else.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file a goal produced.

        Raises:
            NotFoundError: It is gone.
            InvalidInputError: It is not the file that was referenced.
        """
