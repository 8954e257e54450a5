"""The system as one agent sees it, over NATS."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from ioa.adapters.nats.delivery.work_queue import Delivery, consume
from ioa.adapters.nats.requests.request import FILE_TIMEOUT, SEARCH_TIMEOUT, NatsRequester
from ioa.adapters.nats.stores.goal_records import TICKET, deadline_of
from ioa.adapters.nats.streams.topology import ANY_AGENT, WORK, pool_consumer
from ioa.adapters.nats.wire.connection import at_renewal
from ioa.adapters.nats.wire.sinks import MessageSink
from ioa.cancellation import TaskGroup
from ioa.errors import InvalidInputError, IoaError, NotPermittedError, RateLimitedError, UnavailableError, reason_of
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
    SetAside,
    Sync,
)
from ioa.group.state import GroupState
from ioa.ports.agent_network import GoalLeader, GoalOffer
from ioa.protocol import subjects
from ioa.protocol.codec import decode
from ioa.protocol.files import Announced, FilePiece, GetFile, PutFile, PutStanding, Stored, put_in_pieces, stream_in_pieces
from ioa.protocol.goals import Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, PoolId, SessionId
from ioa.protocol.messages import TASK_REPORTS, Header, Message
from ioa.protocol.outcomes import ReportOutcomes
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register, Renew
from ioa.protocol.search import Search, SearchResult

_RENEW_TIMEOUT = timedelta(seconds=2)
"""Two attempts and the time between two renewals are shorter than a lease."""
_SAY_TIMEOUT = timedelta(seconds=2)
"""Short, because a message can be sent again at any time, and its group waits for it."""
_REPORTS_AT_ONCE = 8
"""How many reports of one kind an agent has under way in one group. A router takes a group's entries one by one: more would only
be late, and be sent again."""

_WHOSE_KEY = (
    "It is made for one agent by its name: a replica's (writer-0) is for `ioa agent run --replica 0`, a token for the agent and the"
    " pool of its claim, any other for an agent whose card bears the name that `ioa credentials create --pool` was given."
)

_MAX_ROUTERS_REMEMBERED = 10_000
_MAX_UNREAD_BYTES = 8_000_000
"""What may wait to be read of what is pushed to an agent. A member finds out what it was not shown, and asks the log for it."""
_PUSH_BYTES = 500
"""What an entry takes up that waits, besides its bytes."""

_log = structlog.get_logger(__name__)


class _Gate:
    """Lets so many through at once; `users` are inside or wait."""

    def __init__(self) -> None:
        self.room = asyncio.Semaphore(_REPORTS_AT_ONCE)
        self.users = 0


class _Push(NamedTuple):
    """An entry as it came, and who pushed it."""

    data: bytes
    router: str

    @property
    def size_bytes(self) -> int:
        """What it takes up."""
        return len(self.data) + _PUSH_BYTES


class _Inbox:
    """What has come for an agent, and where it comes from: nowhere until the agent has registered."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[SequencedEntry | _Push] = asyncio.Queue()
        """What was pushed, unread, and what answers brought of one's own."""
        self.unread_bytes = 0
        self.passes_over = False
        """Whether the last push was passed over."""
        self.nonce = ""
        self.subscription: Subscription | None = None


class NatsAgentNetwork:
    """Requests to the services, the inbox, the queue of goals and the store of files, on one connection.

    Args:
        client: The connection.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requester = NatsRequester(client)
        self._routers: OrderedDict[CommId, str] = OrderedDict()
        """Who pushed the last entry of a group. Any router is right for any group; this one has the head in memory."""
        self._pools: dict[AgentId, PoolId] = {}
        """Pools of the agents that registered on this connection."""
        self._inboxes: dict[AgentId, _Inbox] = {}
        self._gates: dict[tuple[CommId, AgentId, str], _Gate] = {}

    def _pool(self, agent_id: AgentId) -> PoolId:
        return self._pools.get(agent_id, PoolId(agent_id))

    def _subject(self, agent_id: AgentId, request: str) -> str:
        return subjects.agent(self._pool(agent_id), agent_id, request)

    async def register(self, request: Register) -> Lease:
        """Store the card and take a lease; what is pushed from now on comes into the inbox.

        Raises:
            NotPermittedError: The key, or token, is not that of this agent.
        """
        agent_id, pool = request.card.agent_id, request.card.pool
        self._pools[agent_id] = pool
        try:
            lease = await self._requester.request(subjects.agent(pool, agent_id, subjects.REGISTER), request, Lease)
        except NotPermittedError:
            raise NotPermittedError(
                f"The key or token here is not that of {agent_id} of the pool {pool}.", hint=_WHOSE_KEY
            ) from None
        await self.listen(agent_id, lease.inbox)
        return lease

    async def renew(self, request: Renew) -> Lease:
        """Renew the lease at one registry, or at all registries if that one does not answer."""
        self._pools[request.agent_id] = request.pool
        try:
            subject = subjects.agent(request.pool, request.agent_id, subjects.RENEW)
            return await self._requester.request(subject, request, Lease, timeout=_RENEW_TIMEOUT)
        except RateLimitedError:
            raise
        except UnavailableError as error:
            _log.info("registry_gone", agent_id=request.agent_id, error=error.message)
        subject = subjects.agent(request.pool, request.agent_id, subjects.RENEW_AT_ALL)
        return await self._requester.request(subject, request, Lease, timeout=_RENEW_TIMEOUT)

    async def deregister(self, request: Deregister) -> None:
        """Go offline."""
        await self._requester.request(self._subject(request.agent_id, subjects.DEREGISTER), request, Acknowledged)

    async def search(self, search: Search) -> SearchResult:
        """Ask discovery who fits."""
        if search.by is None:
            raise InvalidInputError("An agent that searches says who it is.", hint="Set `by` to its id.")
        return await self._requester.request(
            self._subject(search.by, subjects.SEARCH), search, SearchResult, timeout=SEARCH_TIMEOUT, is_repeatable=True
        )

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Tell discovery how tasks went."""
        await self._requester.request(self._subject(request.agent_id, subjects.REPORT), request, Acknowledged)

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group."""
        return await self._requester.request(
            self._subject(request.owner, subjects.LAUNCH), request, GroupSnapshot, is_repeatable=True
        )

    async def invite(self, request: InviteMember) -> Accepted | Rejected:
        """Have an agent join a group."""
        return (await self._requester.request(self._subject(request.by, subjects.INVITE), request, SayReply)).answer

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""
        await self._requester.request(self._subject(request.by, subjects.ABANDON), request, Acknowledged)

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """Ask which groups the agent was put into."""
        return await self._requester.request(
            self._subject(request.agent_id, subjects.MEMBERSHIPS), request, OpenMemberships, is_repeatable=True
        )

    async def sync(self, request: Sync) -> Entries:
        """Fetch a page of a group's log."""
        return await self._requester.request(self._subject(request.agent_id, subjects.SYNC), request, Entries, is_repeatable=True)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the router that pushed the group's last entry, or to any if that one does not answer.

        What becomes of it in the log is in the answer, and comes into the inbox like all that others say. Of many reports on tasks
        some go at a time.
        """
        if isinstance(message.payload, TASK_REPORTS):
            async with self._gate(message.header, message.payload.type):
                answer = await self._say_to_a_router(message)
        else:
            answer = await self._say_to_a_router(message)
        inbox = self._inboxes.get(message.header.sender)
        if isinstance(answer, Accepted) and answer.entry is not None and inbox is not None:
            inbox.arrived.put_nowait(answer.entry)
        return answer

    @asynccontextmanager
    async def _gate(self, header: Header, kind: str) -> AsyncIterator[None]:
        key = (header.comm_id, header.sender, kind)
        gate = self._gates.setdefault(key, _Gate())
        gate.users += 1
        try:
            async with gate.room:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[key]

    async def _say_to_a_router(self, message: Message) -> Accepted | Rejected:
        header = message.header
        router = self._routers.get(header.comm_id)
        if router is not None:
            try:
                return await self._say(subjects.say_to(self._pool(header.sender), header.sender, header.comm_id, router), message)
            except RateLimitedError:
                raise
            except UnavailableError as error:
                _log.info("router_gone", comm_id=header.comm_id, router=router, error=error.message)
                self._routers.pop(header.comm_id, None)
        return await self._say(subjects.say(self._pool(header.sender), header.sender, header.comm_id), message)

    async def _say(self, subject: str, message: Message) -> Accepted | Rejected:
        return (await self._requester.request(subject, message, SayReply, timeout=_SAY_TIMEOUT)).answer

    @asynccontextmanager
    async def inbox(self, agent_id: AgentId) -> AsyncIterator[AsyncIterator[SequencedEntry]]:
        """Open the agent's inbox. Where it is, is known once the agent has registered on this connection."""
        inbox = self._inboxes[agent_id] = _Inbox()
        try:
            yield self._drain(agent_id, inbox)
        finally:
            del self._inboxes[agent_id]
            await self._leave(inbox)

    async def listen(self, agent_id: AgentId, nonce: str) -> None:
        """Have what is pushed to the inbox with this nonce, and to no other, come into the agent's open one, if it has one."""
        inbox = self._inboxes.get(agent_id)
        if inbox is None or inbox.nonce == nonce:
            return

        def receive(message: Msg) -> None:
            _keep_unread(agent_id, inbox, _Push(message.data, message.reply))

        await self._leave(inbox)
        if nonce:
            inbox.subscription = await self._client.subscribe(subjects.inbox(agent_id, nonce), future=MessageSink(receive))
        inbox.nonce = nonce

    def _read(self, agent_id: AgentId, push: _Push) -> SequencedEntry | None:
        try:
            entry = decode(SequencedEntry, push.data)
        except IoaError as error:
            _log.error("push_unreadable", agent_id=agent_id, error=str(error))
            return None
        self._note_router(entry.entry.state, push.router)
        return entry

    async def _drain(self, agent_id: AgentId, inbox: _Inbox) -> AsyncIterator[SequencedEntry]:
        while True:
            entry: SequencedEntry | _Push | None = await inbox.arrived.get()
            if isinstance(entry, _Push):
                inbox.unread_bytes -= entry.size_bytes
                entry = self._read(agent_id, entry)
            if entry is not None:
                yield entry

    async def _leave(self, inbox: _Inbox) -> None:
        subscription, inbox.subscription = inbox.subscription, None
        if subscription is not None and not self._client.is_closed:
            await subscription.unsubscribe()

    def at_renewal(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Listen to the connection."""
        return at_renewal(self._client, listener)

    def _note_router(self, state: GroupState, router: str) -> None:
        """Remember whom to speak to in a group that goes on; what was pushed to longest ago is forgotten first."""
        self._routers.pop(state.comm_id, None)
        if router and not state.phase.is_terminal:
            self._routers[state.comm_id] = router
        if len(self._routers) > _MAX_ROUTERS_REMEMBERED:
            self._routers.popitem(last=False)

    async def take_goals(
        self, agent_id: AgentId, pool: PoolId, leader: GoalLeader, *, max_concurrent: int, anybodys: bool = True
    ) -> None:
        """Take goals off the pool's queue, and off everybody's if `anybodys`. Group setup sets aside what is no goal."""

        async def work(delivery: Delivery) -> None:
            try:
                offer = _offer(delivery)
            except InvalidInputError as error:
                digest = hashlib.sha256(delivery.data).hexdigest()
                request = SetAside(agent_id=agent_id, seq=delivery.seq, why=error.message, sha256=digest)
                await self._requester.request(self._subject(agent_id, subjects.SET_ASIDE), request, Acknowledged)
            else:
                await leader.lead(offer)

        async def give_up(delivery: Delivery, error: Exception) -> None:
            await leader.give_up(_offer(delivery), reason_of(error))

        async with TaskGroup() as group:
            for durable in (pool_consumer(pool), *([ANY_AGENT] if anybodys else [])):
                group.create_task(consume(self._client, WORK, durable, work, set_aside=give_up, max_concurrent=max_concurrent))

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
            named = {"agent_id": agent_id, "comm_id": comm_id, "place": place, "session": session}
            request = PutFile(file=file, standing=standing, data=piece, **named)
            return await self._requester.request(self._subject(agent_id, subjects.PUT_FILE), request, Stored, timeout=FILE_TIMEOUT)

        return await put_in_pieces(name, data, media_type, put)

    def stream_file(self, agent_id: AgentId, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        """Request one piece after the other."""

        async def get(after: int) -> FilePiece:
            request = GetFile(object_name=artifact.object_name, sha256=artifact.sha256, after=after)
            subject = self._subject(agent_id, subjects.GET_FILE)
            return await self._requester.request(subject, request, FilePiece, timeout=FILE_TIMEOUT)

        return stream_in_pieces(artifact, get)


def _offer(delivery: Delivery) -> GoalOffer:
    return GoalOffer(decode(Goal, delivery.data), deadline_of(delivery.headers), delivery.attempt, delivery.headers.get(TICKET))


def _keep_unread(agent_id: AgentId, inbox: _Inbox, push: _Push) -> None:
    if inbox.unread_bytes + push.size_bytes > _MAX_UNREAD_BYTES:
        if not inbox.passes_over:
            _log.warning("pushes_passed_over", agent_id=agent_id, why="More is pushed than there is time to read.")
        inbox.passes_over = True
        return
    inbox.passes_over = False
    inbox.unread_bytes += push.size_bytes
    inbox.arrived.put_nowait(push)
