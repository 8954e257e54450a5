"""What the control plane sends: live pushes, results, timers, work and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from ioa.group.events import EncodedEntry
from ioa.protocol.goals import Artifact, Goal, GoalRecord, GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalId, PoolId


class Inboxes(Protocol):
    """The members' live view. A push may be lost; the log repairs it."""

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Show an entry and its place in the log to every member in `audience` that is connected, as a `SequencedEntry`."""


class Results(Protocol):
    """The one terminal result of each goal."""

    async def publish(self, result: GoalResult) -> bool:
        """Publish the result unless the goal has one already; True if this one was the first, which stands."""

    async def get(self, goal_id: GoalId) -> GoalResult | None:
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

    async def goals(self) -> Sequence[GoalRecord]:
        """List all goals on record, oldest first."""

    async def comm_ids(self) -> Sequence[CommId]:
        """List the root groups of all goals on record, whether they were launched or not."""


class WorkQueue(Protocol):
    """Accepted goals that wait for an agent to lead them."""

    async def put(self, goal: Goal, pool: PoolId | None) -> None:
        """Offer a goal to one pool, or to any agent."""

    async def ensure_pool(self, pool: PoolId) -> None:
        """Make the pool's queue, so that goals wait for it even while it has no agent."""


class DeadLetters(Protocol):
    """What could not be processed, kept with its reason."""

    async def put(self, reason: str, why: str, *, subject: str, data: bytes) -> None:
        """Keep a message that was refused. `reason` is one word for machines, `why` a sentence for people."""


class Artifacts(Protocol):
    """Files by reference."""

    async def put(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file; the same name again replaces it."""

    async def get(self, artifact: Artifact) -> bytes:
        """Fetch a file and check its digest.

        Raises:
            NotFoundError: There is no such object.
            InvalidInputError: The object is not the one that was referenced.
        """

    async def describe(self, object_name: str) -> Artifact:
        """Build the reference of an object that somebody else stored.

        Raises:
            NotFoundError: There is no such object.
        """


class MembershipChanges(Protocol):
    """Who is in which open group, as a live view."""

    def groups_of(self, agent_id: AgentId) -> Sequence[CommId]:
        """The groups the agent was put into and that have not been seen to end."""

    def agents(self) -> Sequence[AgentId]:
        """Every agent with an open group."""


class Memberships(Protocol):
    """The record of who is in which open group."""

    async def add(self, agent_ids: Sequence[AgentId], comm_id: CommId) -> None:
        """Put agents into a group."""

    async def remove(self, agent_id: AgentId, comm_id: CommId) -> None:
        """Forget a membership once the group has ended and the agent knows."""
