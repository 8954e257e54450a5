"""The in-memory control plane as agents see it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

from ioa.adapters.nats.delivery.work_queue import MAX_FAILURES
from ioa.cancellation import TaskGroup
from ioa.errors import UnavailableError
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
from ioa.protocol import subjects
from ioa.protocol.codec import MAX_MESSAGE_BYTES, decode, encode
from ioa.protocol.files import Announced, FilePiece, GetFile, PutFile, PutStanding, Stored, put_in_pieces, stream_in_pieces
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, GoalId, PoolId, SessionId
from ioa.protocol.messages import Message
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.registry import Deregister, Lease, Register, Renew
from ioa.protocol.search import Search, SearchResult
from tests.rig.memory_plane import MemoryControlPlane

_LONGEST_PAUSE = 0.05
"""Seconds before a goal is offered again."""


class PlaneNetwork:
    """An `AgentNetwork` for any number of agents of one control plane.

    False in this: it is never out of reach, and only a process that ends loses what was pushed.
    """

    def __init__(self, plane: MemoryControlPlane) -> None:
        self.plane = plane
        self.said: list[Message] = []
        """Every message that reached the router, repeated ones too."""
        self.offered: list[tuple[Goal, Exception]] = []
        """Goals whose lead raised, each with the error, so that they were offered again."""
        self._listeners: list[Callable[[], None]] = []

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
        """Have discovery confirm and keep how tasks went."""
        await self._arrive()
        await self.plane.assessor.report(request)

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group."""
        await self._arrive()
        return await self.plane.setup.launch(request)

    async def invite(self, request: InviteMember) -> Accepted | Rejected:
        """Have an agent join a group."""
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
    async def inbox(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        """Open an agent's live view."""
        async with self.plane.inboxes.open(agent_id) as entries:
            yield entries

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
        """Lead goals, one of the pool and one of anybody's at a time.

        One whose lead raises is offered again, hardly later however long it should wait, and is given up after five errors that are
        no outage.
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
                if offer.deadline is None or offer.deadline > self.plane.clock.now():
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
