"""What an agent client needs of the system."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from ioa.group.requests import (
    AbandonGoal,
    Accepted,
    Entries,
    GroupSnapshot,
    InviteMember,
    LaunchGroup,
    ListMemberships,
    OpenMemberships,
    Rejected,
    SequencedEntry,
    Sync,
)
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, PoolId, SessionId
from ioa.protocol.messages import Message
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.registry import Deregister, Lease, Register, Renew
from ioa.protocol.search import Search, SearchResult


@dataclass(frozen=True)
class GoalOffer:
    """A goal that is an agent's to lead until it has said what becomes of it.

    Attributes:
        deadline: When the goal ends; None if the header is missing.
        attempt: Counts deliveries from 1, to whomever.
        ticket: What is to be shown when the goal's group is opened, or the goal is ended without one; None of one that an older
            version accepted.
    """

    goal: Goal
    deadline: datetime | None
    attempt: int
    ticket: str | None = field(default=None, repr=False)


class GoalLeader(Protocol):
    """Who leads goals."""

    async def lead(self, offer: GoalOffer) -> None:
        """See to it that the goal is led, or ends. If this raises, the goal is offered again."""

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """End a goal that leading has failed for again and again. If this raises, the goal is offered again."""


class AgentNetwork(Protocol):
    """The system as one agent sees it. Every method raises `UnavailableError` when nobody answers."""

    async def register(self, request: Register) -> Lease:
        """Store the card and take a lease.

        Raises:
            AlreadyRunningError: Another process holds the id, with the same card.
            IdTakenError: Another process holds the id, with another card.
        """

    async def renew(self, request: Renew) -> Lease:
        """Keep the lease.

        Raises:
            NotFoundError: The registry does not know the agent.
            SupersededError: Another process has taken the id over.
        """

    async def deregister(self, request: Deregister) -> None:
        """Go offline."""

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery who fits."""

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Tell discovery how the tasks of an ended group went that the agent owned."""

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group.

        Raises:
            ConflictError: Another agent leads the goal, or it has ended.
            NoAgentError: A member cannot join.
            ForbiddenError: The task may not be served by a team.
        """

    async def invite(self, request: InviteMember) -> Accepted | Rejected:
        """Have an agent join a group in which the asker has the floor. Asking again is answered as the first time.

        Raises:
            NotFoundError: There is no such group, or the asker is no member.
            NoAgentError: The agent cannot join.
        """

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """Ask which open groups the agent was put into, a page at a time."""

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log. Asking from the end of a group that has ended says that the agent knows the end.

        Raises:
            NotFoundError: There is no such group.
            ForbiddenError: The agent is none of its members.
            ConflictError: The cursor is of a log that is gone.
        """

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the group's router. Sending it again is answered as the first time.

        Raises:
            SupersededError: Another process has taken the sender's id over.
        """

    def inbox(self, agent_id: AgentId) -> AbstractAsyncContextManager[AsyncIterator[SequencedEntry]]:
        """Open the live view of the agent's groups, which begins when it registers. It may lose entries, never invent them."""

    def at_renewal(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `listener` whenever the connection was renewed while the block runs: what was pushed meanwhile is lost."""

    async def take_goals(
        self, agent_id: AgentId, pool: PoolId, leader: GoalLeader, *, max_concurrent: int, anybodys: bool = True
    ) -> None:
        """Lead goals that wait for the pool, and if `anybodys` for anybody, for ever. A message that is no goal is removed."""

    async def put_file(
        self,
        agent_id: AgentId,
        comm_id: CommId,
        place: str,
        name: str,
        data: bytes,
        media_type: str,
        session: SessionId | None = None,
    ) -> Artifact:
        """Store a file of an open group that the agent is in; the same file in the same place again is the same file.

        Raises:
            ConflictError: Another file has this place, or the group has ended.
            StoreFullError: There is no room now.
        """

    def stream_file(self, agent_id: AgentId, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a file by its reference, as they arrive.

        Raises:
            NotFoundError: No file is stored by this reference.
            InvalidInputError: The stored bytes differ from the reference.
        """
