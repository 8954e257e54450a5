"""What an agent client needs of the system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ioa.group.requests import (
    AbandonGoal,
    Accepted,
    Entries,
    GroupStanding,
    LaunchGroup,
    Rejected,
    SequencedEntry,
    Sync,
)
from ioa.protocol.cards import AgentCard
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.messages import Message
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.registry import Lease, Renew
from ioa.protocol.search import Search, SearchResult

Lead = Callable[[Goal], Awaitable[None]]


class AgentNetwork(Protocol):
    """The system as one agent sees it. Every method raises `UnavailableError` when nobody answers."""

    async def register(self, card: AgentCard) -> Lease:
        """Store the card and take a lease."""

    async def renew(self, request: Renew) -> Lease:
        """Keep the lease.

        Raises:
            NotFoundError: The registry does not know the agent.
        """

    async def deregister(self, agent_id: AgentId) -> None:
        """Go offline."""

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery who fits."""

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Tell discovery how the tasks of an ended group went that the agent owned."""

    async def launch(self, request: LaunchGroup) -> GroupStanding:
        """Open a group.

        Raises:
            ConflictError: Another agent leads the goal, or it has ended.
            NoAgentError: A member cannot join.
            ForbiddenError: The task may not be served by a team.
        """

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log.

        Raises:
            NotFoundError: There is no such group.
        """

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the group's router. Sending it again is answered as the first time."""

    def inbox(self, agent_id: AgentId) -> AbstractAsyncContextManager[AsyncIterator[SequencedEntry]]:
        """Open the live view of the agent's groups. It may lose entries, never invent them."""

    async def take_goals(self, pool: PoolId, lead: Lead, *, side_by_side: int) -> None:
        """Lead goals that wait for the pool or for anybody, for ever; a goal whose `lead` raises is offered again."""

    async def put_file(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file."""

    async def get_file(self, artifact: Artifact) -> bytes:
        """Fetch a file.

        Raises:
            NotFoundError: It is gone.
            InvalidInputError: It is not the file that was referenced.
        """
