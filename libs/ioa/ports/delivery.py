"""Output of the control plane: live pushes, results, timers and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from ioa.group.events import EncodedEntry
from ioa.protocol.goals import GoalResult
from ioa.protocol.ids import AgentId, CommId, GoalName
from ioa.protocol.operation.dead_letters import DeadReason


class Inboxes(Protocol):
    """The members' live view. A push can be lost; members then read the log."""

    async def push(self, audience: Sequence[AgentId], entry: EncodedEntry, *, seq: int, previous_seq: int) -> None:
        """Send an entry with its sequences to the connected members in `audience`, as a `SequencedEntry`."""


class Results(Protocol):
    """Stores the results of goals. A goal has at most one result; a second one is not published."""

    async def publish(self, result: GoalResult) -> bool:
        """Publish the result unless the goal has one; return whether it was published."""

    async def get(self, goal: GoalName) -> GoalResult | None:
        """Return a goal's result; None before it ends."""

    async def remove(self, goal: GoalName) -> None:
        """Remove a goal's result."""


class Timers(Protocol):
    """Deadlines, delivered as messages to any router."""

    async def schedule(self, comm_id: CommId, at: datetime) -> None:
        """Request that a router checks the group at an instant. Idempotent."""

    async def remove(self, comm_id: CommId) -> None:
        """Remove a group's timers."""


class DeadLetters(Protocol):
    """Messages that could not be processed, stored with the reason."""

    async def put(self, reason: DeadReason, why: str, *, subject: str, data: bytes, key: str = "") -> None:
        """Store a rejected message with the reason as a sentence. Within a day, a `key` is stored once."""
