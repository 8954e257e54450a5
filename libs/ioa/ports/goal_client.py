"""What users ask about goals: launching them, waiting for their results, listing them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ioa.group.requests import AnswerQuestion, CancelGroup, GroupSnapshot
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Artifact, GoalRecord, GoalResult, Reason
from ioa.protocol.ids import GoalId, GoalName, UserId
from ioa.protocol.labels import bears
from ioa.protocol.messages import Phase

AnyGoal = GoalId | GoalName
"""A goal: one of one's own by its id, or anybody's by its whole name."""

PAGE_GOALS = 50
"""How many goals a page of a list covers if nobody says."""
PAGE_BYTES = 500_000
"""Behind how many bytes a page of a list ends, as its records, results and groups are stored: decoded they take up to thirty times
as much. Fifty goals as people launch them have a quarter of it."""
MOST_LOOKED_AT = 1_000
"""How many goals are looked at for a page."""


GoalPhase = Phase | Literal["waiting"]
"""Where a goal stands: where its group does, or that it waits for one."""

PHASES_OF_GOALS: Sequence[str] = ("waiting", *Phase)
"""All of them, as they are written."""


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

    async def answer(self, request: AnswerQuestion, user: UserId | None = None) -> None:
        """Answer what a group asks that works for a goal of one's own, or what a task in it asks; an admin says whose it is.

        Raises:
            NotFoundError: There is no such group.
            ForbiddenError: It works for somebody else.
            InvalidInputError: This is none of the options.
            ConflictError: Nothing of the kind waits for an answer, now or any more.
        """

    async def goal(self, goal: AnyGoal, *, with_team: bool = True) -> GoalStatus:
        """Look at one goal.

        Args:
            goal: Which.
            with_team: Whether the team of its record and the charter of its group are read, which take up to thirty times as much
                memory as they are stored with.

        Raises:
            NotFoundError: There is no such goal, or it was removed.
        """

    async def waiting(self, goal: AnyGoal) -> int:
        """Return how many goals of the same user are not begun, since as many as may be are open."""

    async def goals(self, *, limit: int = PAGE_GOALS, before: int | None = None, only: GoalFilter = ALL_GOALS) -> GoalList:
        """List goals on record, newest first, a page at a time.

        Args:
            limit: How many at the most. There may be fewer although there is more: a page ends behind `PAGE_BYTES`, and no more
                than 1,000 are looked at for one.
            before: What the page before said; the newest goals if None.
            only: Which ones.
        """

    async def find_goal(self, start: str) -> GoalName:
        """Complete the id of a goal from its beginning; of one that is not among the newest only a whole id is found.

        One's own goals come first. `user/id` names one of somebody else.

        Raises:
            NotFoundError: No goal's id begins so.
            InvalidInputError: Several do.
        """

    async def upload(
        self,
        name: str,
        data: bytes | AsyncIterable[bytes],
        *,
        media_type: str | None = None,
        goal_id: GoalId | None = None,
    ) -> Artifact:
        """Store a file of one's own, which goals may refer to.

        Args:
            name: What people call it; a plain file name.
            data: What is in it, whole or as it comes.
            media_type: What it is; guessed from the name if nobody says.
            goal_id: For which goal, if that has an id: then the same file again is the same one.

        Raises:
            InvalidInputError: The name cannot be one.
            ConflictError: Another file of this name was stored for that goal.
            OverQuotaError: One stores too much at present.
        """

    def stream(self, artifact: Artifact, *, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield a file, or its bytes from `start` up to `stop`, as they come; see `ioa.protocol.files.stream_in_pieces`.

        Args:
            artifact: The reference.
            start: The first byte.
            stop: The one behind the last.

        Raises:
            NotFoundError: No file is stored by this reference.
            InvalidInputError: The stored bytes differ from the reference; checked at the end of a whole file.
        """

    async def fetch(self, artifact: Artifact) -> bytes:
        """Fetch a file a goal produced.

        Raises:
            NotFoundError: It is gone.
            InvalidInputError: It is not the file that was referenced.
        """
