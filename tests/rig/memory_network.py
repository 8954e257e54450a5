"""The in-memory control plane as agents see it whose clock, network and neighbours a test decides about."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta

from ioa.adapters.nats.delivery.work_queue import MAX_FAILURES
from ioa.concurrency import TaskGroup
from ioa.errors import UnavailableError
from ioa.group.events import CancelRequested
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
    SayReply,
    SequencedEntry,
    Sync,
)
from ioa.ports.agent_network import GoalLeader
from ioa.ports.group_log import StoredEntry
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import ReportOutcomes
from ioa.protocol.agents.search import Search, SearchResult
from ioa.protocol.cards import Load
from ioa.protocol.codec import MAX_MESSAGE_BYTES, decode, encode
from ioa.protocol.goals import Announced, Artifact, Goal, GoalRecord, GoalResult
from ioa.protocol.ids import LOCAL, AgentId, CommId, GoalId, GoalName, PoolId, SessionId, comm_id_of_goal
from ioa.protocol.messages import Message
from ioa.protocol.registry import Deregister, Lease, Register, Renew
from ioa.protocol.setup.file_requests import FilePiece, GetFile, PutFile, PutStanding, Stored, put_in_pieces, stream_in_pieces
from ioa.protocol.setup.tickets import digest_of_ticket
from ioa.testing.manual_clock import ManualClock
from tests.rig.memory_plane import MemoryControlPlane, Push

_LONGEST_PAUSE = 0.05
"""Seconds before a goal is offered again."""


class MemoryNetwork:
    """An `AgentNetwork` whose decisions are those of the real services, and whose faults and clock are a test's.

    False in this: nothing is durable, time passes only when the clock is moved, and discovery finds everybody who is online, as
    similar to every need as `discovery.similarity` says.

    Args:
        clock: Decides when leases, floors and pauses run out; move it with `advance`.
    """

    def __init__(
        self,
        clock: ManualClock,
        *,
        renew_every: timedelta = timedelta(milliseconds=50),
        task_lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self.plane = MemoryControlPlane(clock, renew_every=renew_every, task_lease=task_lease)
        self.clock = clock
        self.log, self.results, self.artifacts = self.plane.log, self.plane.results, self.plane.artifacts
        self.progress, self.outcomes = self.plane.progress, self.plane.outcomes
        self.discovery = self.plane.discovery
        self.reachable = True
        """Set to False, no request is answered until it is set to True again."""
        self.said: list[Message] = []
        """Every message that reached the router, repeated ones too."""
        self.offered: list[tuple[Goal, Exception]] = []
        """Goals whose lead raised, each with the error, so that they were offered again."""
        self._listeners: list[Callable[[], None]] = []

    def deliver_pushes(self, push: Push) -> None:
        """Decide what becomes of each push from now on."""
        self.plane.inboxes.push_as = push

    async def offer(self, goal: Goal) -> CommId:
        """Put a goal on record and offer it to the pool it names, or to anybody."""
        ticket = await self.plane.tickets.of(GoalName(LOCAL, goal.goal_id))
        accepting = GoalRecord(goal=goal, accepted_at=self.clock.now(), ticket_digest=digest_of_ticket(ticket))
        record = await self.plane.goals.create(accepting)
        await self.plane.work.put(record, PoolId(goal.agent) if goal.agent else None, ticket)
        return comm_id_of_goal(goal.goal_id)

    async def entries(self, comm_id: CommId) -> Sequence[StoredEntry]:
        """Return a group's whole log."""
        return await self.log.read(comm_id, after=0, limit=10_000)

    async def result(self, goal: Goal) -> GoalResult | None:
        """Return a goal's result."""
        return await self.results.get(GoalName(LOCAL, goal.goal_id))

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether an agent's lease stands."""
        return self.plane.view.is_online(agent_id)

    def load(self, agent_id: AgentId) -> Load:
        """How busy an agent said it was."""
        return self.plane.view.load(agent_id)

    def open_groups(self, agent_id: AgentId) -> Sequence[CommId]:
        """Return the groups an agent is in and has not been seen to know the end of."""
        return self.plane.memberships.groups_of(agent_id)

    async def cancel(self, comm_id: CommId) -> None:
        """Cancel a group as a user would."""
        await self.plane.ledgers[0].record(comm_id, CancelRequested(at=self.clock.now(), why="Cancelled on request."))

    async def advance(self, by: timedelta) -> None:
        """Let time pass and have the router look at every deadline that has come."""
        self.clock.advance(by)
        await self.plane.fire_due()

    def end_lease(self, agent_id: AgentId) -> None:
        """Let the lease of an agent whose process died be over, without waiting for it."""
        self.plane.leases.forget(agent_id)

    def renew_connections(self) -> None:
        """Tell every agent that its connection was renewed."""
        for listener in list(self._listeners):
            listener()

    def lose_everything(self) -> None:
        """Lose all stores of the server, and reconnect the agents."""
        self.log.lose()
        self.results.lose()
        self.plane.goals.lose()
        self.plane.memberships.lose()
        self.plane.open_groups.lose()
        self.plane.ledgers[0].forget()
        self.renew_connections()

    async def register(self, request: Register) -> Lease:
        """Store the card and take a lease."""
        await self._arrive()
        return await self.plane.registry.register(request)

    async def renew(self, request: Renew) -> Lease:
        """Keep the lease."""
        await self._arrive()
        return await self.plane.registry.renew(request)

    async def deregister(self, request: Deregister) -> None:
        """Go offline."""
        await self._arrive()
        await self.plane.registry.deregister(request)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery."""
        await self._arrive()
        return await self.plane.discovery.search(search)

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Store the outcomes of an ended group."""
        await self._arrive()
        await self.plane.assessor.report(request)

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group."""
        await self._arrive()
        return await self.plane.setup.launch(request)

    async def invite(self, request: InviteMember) -> Accepted | Rejected:
        """Add an agent to a group."""
        await self._arrive()
        return (await self.plane.setup.invite(request)).answer

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""
        await self._arrive()
        await self.plane.setup.abandon(request)

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """Ask which groups the agent was put into."""
        await self._arrive()
        return await self.plane.setup.memberships(request)

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log."""
        await self._arrive()
        return await self.plane.log_pages.sync(request)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Have the router decide about a message."""
        await self._arrive()
        self.said.append(message)
        data, sender = encode(message, max_payload_bytes=MAX_MESSAGE_BYTES), message.header.sender
        answer = decode(
            SayReply, await self.plane.routers[0].say(subjects.say(PoolId(sender), sender, message.header.comm_id), data)
        ).answer
        if isinstance(answer, Accepted) and answer.entry is not None:
            self.plane.inboxes.deliver(sender, answer.entry)
        return answer

    @asynccontextmanager
    async def inbox(self, agent_id: AgentId, receive: Callable[[SequencedEntry], None]) -> AsyncIterator[None]:
        """Open an agent's live view."""
        with self.plane.inboxes.open(agent_id, receive):
            yield

    @contextmanager
    def at_renewal(self, listener: Callable[[], None]) -> Iterator[None]:
        """Listen for `renew_connections`."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def take_goals(
        self, agent_id: AgentId, pool: PoolId, leader: GoalLeader, *, max_concurrent: int, anybodys: bool = True
    ) -> None:
        """Lead goals: a goal of the pool, and a goal for any agent, at a time.

        A goal whose leader raises an error is offered again after a short pause, and ends after five errors that are no outage.
        """
        async with TaskGroup() as group:
            for queue in (pool, None) if anybodys else (pool,):
                group.create_task(self._take_goals(queue, leader))

    async def _take_goals(self, pool: PoolId | None, leader: GoalLeader) -> None:
        work, failures = self.plane.work, Counter[GoalId]()
        while True:
            seq, offer = await work.take(pool)
            again = replace(offer, attempt=offer.attempt + 1)
            try:
                if offer.deadline > self.plane.clock.now():
                    await leader.lead(offer)
                work.acknowledge(seq, pool)
            except asyncio.CancelledError:
                work.offer_again(seq, again, pool)
                raise
            except Exception as error:  # noqa: BLE001 - as in a queue: whatever a leader raises, it is offered again
                self.offered.append((offer.goal, error))
                failures[offer.goal.goal_id] += not isinstance(error, UnavailableError)
                if failures[offer.goal.goal_id] >= MAX_FAILURES:
                    await leader.give_up(offer, str(error))
                    work.acknowledge(seq, pool)
                else:
                    work.offer_again(seq, again, pool)
                pause = error.retry_after if isinstance(error, UnavailableError) else None
                await asyncio.sleep(0 if pause is None else min(pause.total_seconds(), _LONGEST_PAUSE))

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
        """Store a file."""

        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            await self._arrive()
            named = {"agent_id": agent_id, "comm_id": comm_id, "place": place, "session": session}
            request = PutFile(file=file, standing=standing, data=piece, **named)
            return await self.plane.files.put(request)

        return await put_in_pieces(name, data, media_type, put)

    def stream_file(self, agent_id: AgentId, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        """Request one piece after the other."""

        async def get(after: int) -> FilePiece:
            await self._arrive()
            return await self.plane.files.get(GetFile(object_name=artifact.object_name, sha256=artifact.sha256, after=after))

        return stream_in_pieces(artifact, get)

    async def _arrive(self) -> None:
        await asyncio.sleep(0)
        if not self.reachable:
            raise UnavailableError("Nobody answers.")
