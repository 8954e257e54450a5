"""The system as one agent sees it, over NATS."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import TypeVar

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from ioa.adapters.nats.delivery.work_queue import Delivery, consume
from ioa.adapters.nats.requests.request import DEFAULT_TIMEOUT, FILE_TIMEOUT, SAY_TIMEOUT, SEARCH_TIMEOUT, NatsRequester
from ioa.adapters.nats.stores.goal_records import DEADLINE, TICKET
from ioa.adapters.nats.streams.topology import ANY_AGENT, WORK, pool_consumer
from ioa.adapters.nats.wire.subscriptions import MessageSink, at_renewal
from ioa.concurrency import TaskGroup
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
    Sync,
)
from ioa.group.state import GroupState
from ioa.ports.agent_network import GoalLeader, GoalOffer
from ioa.protocol import subjects
from ioa.protocol.agents.outcomes import ReportOutcomes
from ioa.protocol.agents.search import Search, SearchResult
from ioa.protocol.codec import decode
from ioa.protocol.goals import Announced, Artifact, Goal
from ioa.protocol.ids import AgentId, CommId, PoolId, SessionId
from ioa.protocol.messages import Message
from ioa.protocol.model import Model
from ioa.protocol.registry import Acknowledged, Deregister, Lease, Register, Renew
from ioa.protocol.setup.file_requests import FilePiece, GetFile, PutFile, PutStanding, Stored, put_in_pieces, stream_in_pieces

_RENEW_TIMEOUT = timedelta(seconds=2)
"""Two attempts and the time between two renewals are shorter than a lease."""
_KEY_HINT = (
    "A key is made for one agent: a replica's (writer-0) is for `ioa agent run --replica 0`, a token for the agent and the pool of"
    " its claim, any other for an agent whose card has the name that `ioa credentials create --pool` was given."
)
_MAX_KNOWN_ROUTERS = 10_000

_log = structlog.get_logger(__name__)

Reply = TypeVar("Reply", bound=Model)


@dataclass(slots=True)
class _Inbox:
    """An agent's open inbox. No pushes arrive before the agent registers."""

    receive: Callable[[SequencedEntry], None]
    nonce: str = ""
    subscription: Subscription | None = None


class NatsAgentNetwork:
    """Requests to the services, the inbox, the queue of goals and the files of agents, over one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._requester = NatsRequester(client)
        self._routers: dict[CommId, str] = {}
        """The router that pushed the last entry of each group. Any router can handle a message; this one has the head cached."""
        self._pools: dict[AgentId, PoolId] = {}
        """Pools of the agents that registered on this connection."""
        self._inboxes: dict[AgentId, _Inbox] = {}

    def _pool(self, agent_id: AgentId) -> PoolId:
        return self._pools.get(agent_id, PoolId(agent_id))

    async def _ask(
        self,
        agent_id: AgentId,
        request: str,
        payload: Model,
        reply: type[Reply],
        *,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> Reply:
        subject = subjects.agent(self._pool(agent_id), agent_id, request)
        return await self._requester.request(subject, payload, reply, timeout=timeout)

    async def register(self, request: Register) -> Lease:
        """Store the card, take a lease, and open the inbox for pushes.

        Raises:
            NotPermittedError: The key or token belongs to another agent.
        """
        agent_id, pool = request.card.agent_id, request.card.pool
        self._pools[agent_id] = pool
        try:
            lease = await self._ask(agent_id, subjects.REGISTER, request, Lease)
        except NotPermittedError:
            raise NotPermittedError(f"The key or token does not belong to {agent_id} of the pool {pool}.", hint=_KEY_HINT) from None
        await self.listen(agent_id, lease.inbox)
        return lease

    async def renew(self, request: Renew) -> Lease:
        """Renew the lease at one registry, or at all registries if that one does not answer."""
        self._pools[request.agent_id] = request.pool
        try:
            return await self._ask(request.agent_id, subjects.RENEW, request, Lease, timeout=_RENEW_TIMEOUT)
        except RateLimitedError:
            raise
        except UnavailableError as error:
            _log.info("registry_unavailable", agent_id=request.agent_id, error=error.message)
        return await self._ask(request.agent_id, subjects.RENEW_AT_ALL, request, Lease, timeout=_RENEW_TIMEOUT)

    async def deregister(self, request: Deregister) -> None:
        """Go offline."""
        await self._ask(request.agent_id, subjects.DEREGISTER, request, Acknowledged)

    async def search(self, search: Search) -> SearchResult:
        """Search for agents; `by` names the agent that searches."""
        if search.by is None:
            raise InvalidInputError("The search names no agent.", hint="Set `by` to the id of the agent that searches.")
        return await self._ask(search.by, subjects.SEARCH, search, SearchResult, timeout=SEARCH_TIMEOUT)

    async def report_outcomes(self, request: ReportOutcomes) -> None:
        """Report the outcomes of tasks to discovery."""
        await self._ask(request.agent_id, subjects.REPORT, request, Acknowledged)

    async def launch(self, request: LaunchGroup) -> GroupSnapshot:
        """Open a group."""
        return await self._ask(request.owner, subjects.LAUNCH, request, GroupSnapshot)

    async def invite(self, request: InviteMember) -> Accepted | Rejected:
        """Add an agent to a group."""
        return (await self._ask(request.by, subjects.INVITE, request, SayReply)).answer

    async def abandon(self, request: AbandonGoal) -> None:
        """End a goal for which no group can be opened."""
        await self._ask(request.by, subjects.ABANDON, request, Acknowledged)

    async def memberships(self, request: ListMemberships) -> OpenMemberships:
        """List the open groups of the agent."""
        return await self._ask(request.agent_id, subjects.MEMBERSHIPS, request, OpenMemberships)

    async def sync(self, request: Sync) -> Entries:
        """Read a page of a group's log."""
        return await self._ask(request.agent_id, subjects.SYNC, request, Entries)

    async def say(self, message: Message) -> Accepted | Rejected:
        """Send a message to the router that pushed the group's last entry, or to any router if that one does not answer.

        The reply contains the appended entry, which the sender's inbox receives first.
        """
        answer = await self._say_to_a_router(message)
        inbox = self._inboxes.get(message.header.sender)
        if isinstance(answer, Accepted) and answer.entry is not None and inbox is not None:
            inbox.receive(answer.entry)
        return answer

    async def _say_to_a_router(self, message: Message) -> Accepted | Rejected:
        header, pool = message.header, self._pool(message.header.sender)
        router = self._routers.get(header.comm_id)
        if router is not None:
            try:
                return await self._say(subjects.say_to(pool, header.sender, header.comm_id, router), message)
            except RateLimitedError:
                raise
            except UnavailableError as error:
                _log.info("router_unavailable", comm_id=header.comm_id, router=router, error=error.message)
                self._routers.pop(header.comm_id, None)
        return await self._say(subjects.say(pool, header.sender, header.comm_id), message)

    async def _say(self, subject: str, message: Message) -> Accepted | Rejected:
        return (await self._requester.request(subject, message, SayReply, timeout=SAY_TIMEOUT)).answer

    @asynccontextmanager
    async def inbox(self, agent_id: AgentId, receive: Callable[[SequencedEntry], None]) -> AsyncIterator[None]:
        """Open the agent's inbox. Its subject is known once the agent has registered on this connection."""
        inbox = self._inboxes[agent_id] = _Inbox(receive)
        try:
            yield
        finally:
            del self._inboxes[agent_id]
            await self._unsubscribe(inbox)

    async def listen(self, agent_id: AgentId, nonce: str) -> None:
        """Receive pushes to the inbox with this nonce, and to no other, if the agent has opened its inbox."""
        inbox = self._inboxes.get(agent_id)
        if inbox is None or inbox.nonce == nonce:
            return
        await self._unsubscribe(inbox)
        if nonce:
            inbox.subscription = await self._client.subscribe(
                subjects.inbox(agent_id, nonce), future=MessageSink(partial(self._receive, inbox))
            )
        inbox.nonce = nonce

    async def _unsubscribe(self, inbox: _Inbox) -> None:
        subscription, inbox.subscription = inbox.subscription, None
        if subscription is not None and not self._client.is_closed:
            await subscription.unsubscribe()

    def _receive(self, inbox: _Inbox, push: Msg) -> None:
        try:
            entry = _decode_entry(push.data)
        except IoaError as error:
            _log.error("push_unreadable", subject=push.subject, error=str(error))
            return
        self._note_router(entry.entry.state, push.reply)
        inbox.receive(entry)

    def at_renewal(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `listener` after each reconnect while the block runs."""
        return at_renewal(self._client, listener)

    def _note_router(self, state: GroupState, router: str) -> None:
        """Note the router of an open group."""
        self._routers.pop(state.comm_id, None)
        if len(self._routers) >= _MAX_KNOWN_ROUTERS:  # the last entry of a group may not arrive
            self._routers.clear()
        if router and not state.phase.is_terminal:
            self._routers[state.comm_id] = router

    async def take_goals(
        self, agent_id: AgentId, pool: PoolId, leader: GoalLeader, *, max_concurrent: int, anybodys: bool = True
    ) -> None:
        """Take goals from the queue of the pool, and from the queue for any agent if `anybodys`, until cancelled.

        A message that is no goal is removed from its queue.
        """

        async def work(delivery: Delivery) -> None:
            try:
                offer = _offer(delivery)
            except InvalidInputError as error:  # the goal is on record: it is offered to another pool, or ends at its deadline
                _log.error("offer_unreadable", agent_id=agent_id, message=delivery.identity, error=error.message)
            else:
                await leader.lead(offer)

        async def give_up(delivery: Delivery, error: Exception) -> None:
            await leader.give_up(_offer(delivery), reason_of(error))

        async with TaskGroup() as group:
            if anybodys:
                group.create_task(consume(self._client, WORK, ANY_AGENT, work, set_aside=give_up, max_concurrent=max_concurrent))
            await consume(self._client, WORK, pool_consumer(pool), work, set_aside=give_up, max_concurrent=max_concurrent)

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
        """Store a file in pieces."""

        async def put(file: Announced, standing: PutStanding | None, piece: bytes) -> Stored:
            named = {"agent_id": agent_id, "comm_id": comm_id, "place": place, "session": session}
            request = PutFile(file=file, standing=standing, data=piece, **named)
            return await self._ask(agent_id, subjects.PUT_FILE, request, Stored, timeout=FILE_TIMEOUT)

        return await put_in_pieces(name, data, media_type, put)

    def stream_file(self, agent_id: AgentId, artifact: Artifact) -> AsyncGenerator[bytes, None]:
        """Read a file in pieces."""

        async def get(after: int) -> FilePiece:
            request = GetFile(object_name=artifact.object_name, sha256=artifact.sha256, after=after)
            return await self._ask(agent_id, subjects.GET_FILE, request, FilePiece, timeout=FILE_TIMEOUT)

        return stream_in_pieces(artifact, get)


@lru_cache(maxsize=16)
def _decode_entry(data: bytes) -> SequencedEntry:
    """Decode a pushed entry; the members of a group that share a process receive equal data."""
    return decode(SequencedEntry, data)


def _offer(delivery: Delivery) -> GoalOffer:
    try:
        deadline = datetime.fromisoformat(delivery.headers[DEADLINE])
    except (KeyError, ValueError):
        raise InvalidInputError("The offered goal has no deadline.") from None
    return GoalOffer(decode(Goal, delivery.data), deadline, delivery.attempt, delivery.headers.get(TICKET))
