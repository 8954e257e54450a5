"""What the control plane sends: live pushes, results, timers, work and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from ioa.group.events import EncodedEntry, Said
from ioa.protocol.dead_letters import DeadReason
from ioa.protocol.goals import GoalRecord, GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalName


class Inboxes(Protocol):
    """The members' live view. A push may be lost; the log repairs it."""

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Show an entry and its place in the log to every member in `audience` that is connected, as a `SequencedEntry`."""


class ProgressFeed(Protocol):
    """Reports of progress that are no entries, as they are accepted. One may be lost; the next says more."""

    async def publish(self, said: Said, goal: GoalName) -> None:
        """Send a report to all current listeners: the other routers, and people who watch the goal."""


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


class DeadLetters(Protocol):
    """What could not be processed, kept with its reason."""

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Keep a message that was refused, and say `why` in a sentence; the same `key` again, within a day, is the same letter."""
