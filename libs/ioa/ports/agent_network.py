"""The system as an agent sees it: the requests of an agent client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
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
from ioa.protocol.agents.outcomes import ReportOutcomes
from ioa.protocol.agents.search import Search, SearchResult
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, PoolId, SessionId
from ioa.protocol.messages import Message
from ioa.protocol.registry import Deregister, Lease, Register, Renew


@dataclass(frozen=True)
class GoalOffer:
    """A goal that an agent may lead until it acknowledges the offer.

    Attributes:
        attempt: Number of this delivery, from 1, over all agents.
        ticket: Authorises the request that opens the goal's group, or that ends the goal without a group.
    """

    goal: Goal
    deadline: datetime
    attempt: int
    ticket: str | None = field(default=None, repr=False)


class GoalLeader(Protocol):
    """Leads offered goals. If a method raises, the goal is offered again."""

    async def lead(self, offer: GoalOffer) -> None:
        """Open the goal's group, or end the goal."""

    async def give_up(self, offer: GoalOffer, why: str) -> None:
        """End a goal whose offers failed too often."""


class AgentNetwork(Protocol):
    """The system as one agent sees it. Every method raises `UnavailableError` if no service answers."""

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
        """Search for agents that fit needs."""

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Ask discovery to store the outcomes of the tasks of an ended group. Only the group's owner may."""

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group.

        Raises:
            ConflictError: Another agent leads the goal, or it has ended.
            NoAgentError: A member cannot join.
            ForbiddenError: The task may not be served by a team.
        """

    async def invite(self, request: InviteMember) -> Accepted | Rejected:
        """Add an agent to a group in which the caller holds the floor. Idempotent.

        Raises:
            NotFoundError: There is no such group, or the caller is not a member.
            NoAgentError: The agent cannot join.
        """

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """Return a page of the open groups that the agent is a member of."""

    async def sync(self, request: Sync) -> Entries:
        """Return a page of a group's log. A request from the end of an ended group removes the membership.

        Raises:
            NotFoundError: There is no such group.
            ForbiddenError: The agent is not a member.
            ConflictError: The cursor belongs to a lost log.
        """

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the group's router. Idempotent.

        Raises:
            SupersededError: Another process has taken the sender's id over.
        """

    def inbox(self, agent_id: AgentId, receive: Callable[[SequencedEntry], None]) -> AbstractAsyncContextManager[None]:
        """Pass entries of the agent's groups to `receive` while the block runs, once it registers. Entries can be lost."""

    def at_renewal(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `listener` after each reconnect while the block runs: entries pushed meanwhile are lost."""

    async def take_goals(
        self, agent_id: AgentId, pool: PoolId, leader: GoalLeader, *, max_concurrent: int, anybodys: bool = True
    ) -> None:
        """Lead goals of the pool, and if `anybodys`, goals without a pool, until cancelled. Malformed goals are removed."""

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
        """Store a file of an open group that the agent is a member of. Idempotent.

        Raises:
            ConflictError: Another file has this place, or the group has ended.
            StoreFullError: The store is full.
        """

    def stream_file(self, agent_id: AgentId, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a file as they arrive.

        Raises:
            NotFoundError: There is no such file.
            InvalidInputError: The stored bytes differ from the reference.
        """
