"""What retention needs: goals on record page by page, what stays of those that were removed, and removing the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ioa.protocol.codec import decode
from ioa.protocol.goals import EndedGoal, GoalRecord
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId

"""Leads to the team in a record."""


@dataclass(frozen=True)
class NumberedRecord:
    """A goal on record and its number. Numbers rise in the order of acceptance, with gaps."""

    number: int
    record: GoalRecord


@dataclass(frozen=True)
class ListedRecord(NumberedRecord):
    """A goal on record as lists read it: without its team, which takes thirty times as much as it is stored with.

    Attributes:
        stored: The whole of it, encoded.
        place: The how manieth of its page it is, those that are left out counted in.
    """

    stored: bytes
    place: int

    def whole(self) -> GoalRecord:
        """Read all of it."""
        return decode(GoalRecord, self.stored)


def listed(number: int, stored: bytes, place: int) -> ListedRecord:
    """Read a record but for its team.

    Raises:
        InvalidInputError: It is none.
    """
    return ListedRecord(number, decode(GoalRecord, stored), stored, place)


@dataclass(frozen=True)
class GoalPage:
    """A page of records, and the number to go on from; None when there is no more."""

    records: Sequence[NumberedRecord]
    next: int | None


@dataclass(frozen=True)
class ListedPage:
    """A page of records as lists read them, newest first.

    Attributes:
        records: Those that can be read.
        before: The number to go on from; None when there is no more.
        looked_at: How many there were, those that cannot be read counted in.
    """

    records: Sequence[ListedRecord]
    before: int | None
    looked_at: int


class GoalPages(Protocol):
    """Goals on record, a page at a time. A record that cannot be read is left out."""

    async def oldest(self, *, after: int, limit: int) -> GoalPage:
        """Read up to `limit` records behind the number `after`, oldest first."""

    async def newest(self, *, before: int | None, limit: int, max_bytes: int) -> ListedPage:
        """Read up to `limit` records before the number `before`, or the last ones, newest first.

        There are fewer where they have more than `max_bytes` as they are stored: the last one is the one that reaches it.
        """


class EndedGoals(Protocol):
    """What stays of goals that were removed. The first word about a goal stands."""

    async def put(self, ended: EndedGoal) -> None:
        """Keep the id and the outcome of a goal. Keeping them again changes nothing."""

    async def find(self, goal: GoalName) -> EndedGoal | None:
        """Read how a goal ended whose removal has begun; None for every other one."""


@dataclass(frozen=True)
class Belongings:
    """What a group's log names: its nested teams, and files by the names of their objects."""

    nested: tuple[CommId, ...] = ()
    files: frozenset[str] = frozenset()


class GoalRemoval(Protocol):
    """Removing what belongs to a goal, one kind after the other. Removing what is gone does nothing.

    Raises:
        UnavailableError: From every method: whether it is gone is unknown; it may be removed again.
    """

    async def belongings(self, comm_id: CommId) -> Belongings:
        """Read what a group's log names, of entries of any version; nothing if there is no log."""

    async def remove_timers(self, comm_id: CommId) -> None:
        """Disarm every deadline of a group."""

    async def remove_file(self, object_name: str) -> None:
        """Remove a file that the system stores, never one in the store that users fill."""

    async def remove_memberships(self, comm_id: CommId) -> None:
        """Take everybody out of a group, also whom its log does not name, so that nobody asks for it any more."""

    async def remove_from_open(self, comm_id: CommId) -> None:
        """Take a group out of the list of what is open."""

    async def remove_log(self, comm_id: CommId) -> None:
        """Remove a group's log."""

    async def remove_result(self, goal: GoalName) -> None:
        """Remove a goal's result."""

    async def remove_record(self, comm_id: CommId) -> None:
        """Remove the record of the goal whose root group is `comm_id`."""


class AgentRemoval(Protocol):
    """Removing what the registry keeps of an agent."""

    async def last_renewal(self, agent_id: AgentId) -> datetime | None:
        """When the agent's lease was last written, by the store's clock; None if there is no lease on record."""

    async def remove_agent(self, agent_id: AgentId) -> None:
        """Remove card, lease and session; everybody who follows them is told."""

    async def remove_queue(self, pool: PoolId) -> bool:
        """Remove the queue of a pool unless goals wait in it; returns whether it is gone."""
