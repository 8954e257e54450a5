"""What the control plane sends: live pushes, results, timers, work and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from ioa.group.events import EncodedEntry, Said
from ioa.group.requests import OpenMemberships
from ioa.protocol.goals import GoalRecord, GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalName, PoolId


class Inboxes(Protocol):
    """The members' live view. A push may be lost; the log repairs it."""

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Show an entry and its place in the log to every member in `audience` that is connected, as a `SequencedEntry`."""


class ProgressFeed(Protocol):
    """Reports of progress that are no entries, as they are accepted. One may be lost; the next says more."""

    async def publish(self, said: Said) -> None:
        """Show a report to whoever listens now: the other routers, and people who watch the group."""


class Results(Protocol):
    """The one terminal result of each goal."""

    async def publish(self, result: GoalResult) -> bool:
        """Publish the result unless the goal has one already; True if this one was the first, which stands."""

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Read a goal's result; None while it has none."""


class Timers(Protocol):
    """Deadlines that come back as messages, whoever lives then."""

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Have the routers look at the group at `at`. Scheduling one instant twice schedules it once."""


class GoalRecords(Protocol):
    """What goals were accepted. A record never changes."""

    async def create(self, record: GoalRecord) -> GoalRecord:
        """Record a goal under its id and return what is on record, which is an older goal if the id was taken."""

    async def find(self, comm_id: CommId) -> GoalRecord | None:
        """Read the goal whose root group is `comm_id`."""


@dataclass(frozen=True)
class Queued:
    """A message that waits in a queue, as it came."""

    subject: str
    data: bytes


class Tickets(Protocol):
    """What whoever leads a goal has to show (`ioa.protocol.tickets`)."""

    async def of(self, goal: GoalName) -> str:
        """Make a goal's ticket, the same one each time and in every process."""

    async def seal(self, words: str) -> str:
        """Make what shows later that group setup has said these words; no ticket is one."""


class WorkQueue(Protocol):
    """Accepted goals that wait for an agent to lead them."""

    async def put(self, record: GoalRecord, pool: PoolId | None, ticket: str | None = None) -> int:
        """Offer a goal to one pool, or to any agent, until its deadline; then it leaves the queue by itself.

        Args:
            record: The goal.
            pool: Whose agents may take it; None is anybody.
            ticket: The ticket that its leader shows.

        Returns:
            The number under which it waits.
        """

    async def was_taken(self, pool: PoolId | None, seq: int) -> bool:
        """Whether what was put for a pool, or for anybody, under this number has been given to an agent, now or before."""

    async def withdraw(self, seq: int) -> None:
        """Take an offer back. Who has taken it already is not told; to do it again changes nothing."""

    async def look(self, seq: int) -> Queued | None:
        """Look at a message without taking it; None if it waits no more."""

    async def ensure_pool(self, pool: PoolId) -> None:
        """Make the pool's queue, so that goals wait for it even while it has no agent."""


class DeadReason(StrEnum):
    """Why a message is a dead letter."""

    UNREADABLE = "unreadable"
    """No goal can be read off it, or it refers to a file that is not there."""
    TOO_LARGE = "too_large"
    CONFLICT = "conflict"
    """A goal whose id is another one's."""
    ENDED = "ended"
    """A goal that ended so long ago that all but its outcome was removed."""
    FAILED = "failed"
    """A goal that could not be accepted, by a fault of the system's own."""
    UNDELIVERABLE = "undeliverable"
    """The work on it failed again and again, or nobody can tell what work it is."""
    UNREADABLE_ENTRY = "unreadable_entry"
    """A copy of an entry of a group's log that nobody can read; the group stands still."""
    WEBHOOK = "webhook"
    """What a webhook was to tell, and nobody took for a day."""


class DeadLetters(Protocol):
    """What could not be processed, kept with its reason."""

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a message that was refused, and say `why` in a sentence; the same `key` again, within a day, is the same letter."""


class Memberships(Protocol):
    """The record of who is in which open group. Nobody follows it; numbers rise from one membership to the next."""

    async def add(self, agent_ids: Sequence[AgentId], comm_id: CommId) -> None:
        """Put agents into a group."""

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Forget a membership once the group has ended and the agent knows."""

    async def newest(self, agent_id: AgentId) -> int:
        """Read the number of the agent's newest membership; 0 if it has none."""

    async def holds(self, agent_id: AgentId, comm_id: CommId) -> bool:
        """Whether the agent is in a group, from the record's leader: what was added a moment ago counts."""

    async def page(self, agent_id: AgentId, *, after: int, limit: int) -> OpenMemberships:
        """List memberships of an agent by their numbers, from behind `after` on.

        One that was added a moment ago may be missing only from a page that is not complete.
        """

    async def of(self, agent_id: AgentId) -> Sequence[CommId]:
        """List all groups the agent was put into and that it has not been seen to know the end of."""
