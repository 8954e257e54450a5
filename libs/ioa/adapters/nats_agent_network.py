"""The system as one agent sees it, over NATS."""

from __future__ import annotations

import asyncio
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
from ioa.errors import IoaError
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
from ioa.ports.agent_network import Lead
from ioa.protocol import subjects
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import decode
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.messages import Message
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register, Renew
from ioa.protocol.search import Search, SearchResult

_SEARCH_TIMEOUT = timedelta(seconds=15)
_SAY_TIMEOUT = timedelta(seconds=2)
"""Short, since a message may be said again at any time, and the group waits while a router that was killed does not answer."""

_log = structlog.get_logger(__name__)


class NatsAgentNetwork:
    """Requests to the services, the inbox, the queue of goals and the artifact store, on one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requester = NatsRequester(client)
        self._artifacts = NatsArtifacts(client.jetstream())

    async def register(self, card: AgentCard) -> Lease:
        """Store the card and take a lease."""
        return await self._requester.request(subjects.REGISTER, Register(card=card), Lease)

    async def renew(self, request: Renew) -> Lease:
        """Keep the lease."""
        return await self._requester.request(subjects.RENEW, request, Lease)

    async def deregister(self, agent_id: AgentId) -> None:
        """Go offline."""
        await self._requester.request(subjects.DEREGISTER, Deregister(agent_id=agent_id), Acknowledged)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery who fits."""
        return await self._requester.request(subjects.SEARCH, search, SearchResult, timeout=_SEARCH_TIMEOUT)

    async def launch(self, request: LaunchGroup) -> GroupStanding:
        """Open a group."""
        return await self._requester.request(subjects.LAUNCH, request, GroupStanding)

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""
        await self._requester.request(subjects.ABANDON, request, Acknowledged)

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log."""
        return await self._requester.request(subjects.SYNC, request, Entries)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the group's router."""
        subject = subjects.say(message.header.comm_id, message.header.sender)
        return (await self._requester.request(subject, message, SayReply, timeout=_SAY_TIMEOUT)).answer

    @asynccontextmanager
    async def inbox(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        """Subscribe to the agent's inbox."""
        arrived: asyncio.Queue[SequencedEntry] = asyncio.Queue()

        async def receive(message: Msg) -> None:
            try:
                arrived.put_nowait(decode(SequencedEntry, message.data))
            except IoaError as error:
                _log.error("push_unreadable", agent_id=agent_id, error=str(error))

        subscription = await self._client.subscribe(subjects.inbox(agent_id), cb=receive)
        try:
            yield _drain(arrived)
        finally:
            if not self._client.is_closed:
                await subscription.unsubscribe()

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
