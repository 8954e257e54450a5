"""The system as one agent sees it, over NATS."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from ioa.adapters.nats_artifacts import NatsArtifacts
from ioa.adapters.nats_queues import Delivery, consume
from ioa.adapters.nats_requests import NatsRequester
from ioa.adapters.nats_topology import ANY_AGENT, WORK, pool_consumer
from ioa.errors import IoaError, UnavailableError
from ioa.group.requests import (
    AbandonGoal,
    Accepted,
    Entries,
    GroupStanding,
    LaunchGroup,
    Rejected,
    SayReply,
    SequencedEntry,
    Sync,
)
from ioa.group.state import GroupState
from ioa.ports.agent_network import Lead
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, PoolId
from ioa.protocol.messages import Message
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register, Renew
from ioa.protocol.search import Search, SearchResult

_SEARCH_TIMEOUT = timedelta(seconds=15)
_SAY_TIMEOUT = timedelta(seconds=2)
"""Short, since a message may be said again at any time, and the group waits while a router that was killed does not answer."""

_MAX_ROUTERS_REMEMBERED = 10_000

_log = structlog.get_logger(__name__)


class NatsAgentNetwork:
    """Requests to the services, the inbox, the queue of goals and the artifact store, on one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requester = NatsRequester(client)
        self._artifacts = NatsArtifacts(client.jetstream())
        self._routers: OrderedDict[CommId, str] = OrderedDict()
        """Who pushed the last entry of a group. Any router is right for any group; this one has the head in memory."""
        self._inboxes: dict[AgentId, asyncio.Queue[SequencedEntry]] = {}

    async def register(self, card: AgentCard) -> Lease:
        """Store the card and take a lease."""
        return await self._requester.request(subjects.register(card.agent_id), Register(card=card), Lease)

    async def renew(self, request: Renew) -> Lease:
        """Keep the lease."""
        return await self._requester.request(subjects.renew(request.agent_id), request, Lease)

    async def deregister(self, agent_id: AgentId) -> None:
        """Go offline."""
        await self._requester.request(subjects.deregister(agent_id), Deregister(agent_id=agent_id), Acknowledged)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery who fits."""
        return await self._requester.request(subjects.SEARCH, search, SearchResult, timeout=_SEARCH_TIMEOUT)

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Tell discovery how tasks went."""
        await self._requester.request(subjects.report(request.agent_id), request, Acknowledged)

    async def launch(self, request: LaunchGroup) -> GroupStanding:
        """Open a group."""
        return await self._requester.request(subjects.launch(request.owner), request, GroupStanding)

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""
        await self._requester.request(subjects.abandon(request.by), request, Acknowledged)

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log."""
        return await self._requester.request(subjects.sync(request.agent_id), request, Entries)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the router that pushed the group's last entry, or to any if that one does not answer.

        What becomes of it in the log is in the answer, and comes into the inbox like all that others say.
        """
        answer = await self._say_to_a_router(message)
        inbox = self._inboxes.get(message.header.sender)
        if isinstance(answer, Accepted) and answer.entry is not None and inbox is not None:
            inbox.put_nowait(answer.entry)
        return answer

    async def _say_to_a_router(self, message: Message) -> Accepted | Rejected:
        header = message.header
        router = self._routers.get(header.comm_id)
        if router is not None:
            try:
                return await self._say(subjects.say_to(router, header.comm_id, header.sender), message)
            except UnavailableError as error:
                _log.info("router_gone", comm_id=header.comm_id, router=router, error=error.message)
                self._routers.pop(header.comm_id, None)
        return await self._say(subjects.say(header.comm_id, header.sender), message)

    async def _say(self, subject: str, message: Message) -> Accepted | Rejected:
        return (await self._requester.request(subject, message, SayReply, timeout=_SAY_TIMEOUT)).answer

    @asynccontextmanager
    async def inbox(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        """Subscribe to the agent's inbox."""
        arrived: asyncio.Queue[SequencedEntry] = asyncio.Queue()

        async def receive(message: Msg) -> None:
            try:
                entry = decode(SequencedEntry, message.data)
            except IoaError as error:
                _log.error("push_unreadable", agent_id=agent_id, error=str(error))
            else:
                self._note_router(entry.entry.state, message.reply)
                arrived.put_nowait(entry)

        subscription = await self._client.subscribe(subjects.inbox(agent_id), cb=receive)
        self._inboxes[agent_id] = arrived
        try:
            yield _drain(arrived)
        finally:
            del self._inboxes[agent_id]
            if not self._client.is_closed:
                await subscription.unsubscribe()

    def _note_router(self, state: GroupState, router: str) -> None:
        """Remember whom to speak to in a group that goes on; what was pushed to longest ago is forgotten first."""
        self._routers.pop(state.comm_id, None)
        if router and not state.phase.is_terminal:
            self._routers[state.comm_id] = router
        if len(self._routers) > _MAX_ROUTERS_REMEMBERED:
            self._routers.popitem(last=False)

    async def take_goals(self, pool: PoolId, lead: Lead, *, side_by_side: int) -> None:
        """Take goals off the pool's queue and off everybody's."""

        async def work(delivery: Delivery) -> None:
            await lead(decode(Goal, delivery.data))

        async with asyncio.TaskGroup() as group:
            for durable in (pool_consumer(pool), ANY_AGENT):
                group.create_task(consume(self._client, WORK, durable, work, side_by_side=side_by_side))

    async def put_file(self, object_name: str, name: str, data: bytes, media_type: str) -> Artifact:
        """Store a file."""
        return await self._artifacts.put(object_name, name, data, media_type)

    async def get_file(self, artifact: Artifact) -> bytes:
        """Fetch a file."""
        return await self._artifacts.get(artifact)


async def _drain(arrived: asyncio.Queue[SequencedEntry]) -> AsyncIterator[SequencedEntry]:
    while True:
        yield await arrived.get()
