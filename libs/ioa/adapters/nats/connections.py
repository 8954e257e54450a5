"""Who is connected to nats-server from outside, read off its system account, as `Connections`.

The control plane imports three things of that account (`ioa.adapters.nats.authorization`): a list of connections with what each has
sent, the events of its connections, and the request that ends one. Who is let in may `CONNECT` again: while that is looked at, and
where it is refused, the server tells of the connection what he says there, so that the event of an end names nobody. Pulls, by
which few requests have much sent, are heard as they come, with who asks: the server says it in place of whatever a client says.
Where the authorization is older nobody answers, and nothing is told.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import islice

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import AwareDatetime, BaseModel, Field, ValidationError
from pydantic_core import to_json

from ioa.adapters.nats.flood_tellers import TOLD_BYTES, ToldOfFloods
from ioa.adapters.nats.guests import Holder
from ioa.adapters.nats.overheard import AT_ONCE, FLOOD, Asker, FewMessages, OrderHearer, PullHearer
from ioa.adapters.nats.permissions import (
    CONNECTED,
    DISCONNECTED,
    TURNED_AWAY,
    is_judged,
    is_of_agents,
    is_of_services,
    tenant_of,
)
from ioa.adapters.nats.server_requests import ask_who_is_connected, check_may_ask, end_connection
from ioa.adapters.nats.sinks import taking
from ioa.ports.connections import ConnectionHearer, ConnectionId, SentTotals
from ioa.protocol import subjects
from ioa.protocol.ids import UserId
from ioa.protocol.kept_out import MOST_NAMED, KeptOut
from ioa.quotas import Admitted, Buckets, Family, Rate

_MOST = 4_096
"""How many connections a server tells of, those first that were active last."""
_GLANCES, _AT_A_GLANCE, _GLANCE_SECONDS = 6, 64, 0.01
"""How many times a server is asked besides for some that were active last, for how many, and in how many seconds each time."""
_TOLD_BYTES = 8_192
"""How much a server may have to tell of who has connected. How his client is called, in which language and version, he says, in up
to 8 kB where guests come by tokens, which are six times as many as JSON: of a hundred such connections the list is more than a
connection may be sent, so that no flood is seen any more. Of ours it is less than 1 kB."""
_HEARD_AWAY = 200
"""Of how many that were not let in is heard between two counts: whoever comes without end is among them."""
_TAKEN = Rate(25, 50, unit_bytes=16_384)
"""How often a tenant is heard, each of whose replicas tells once in a second: a long telling counts as five short ones."""
_WATCHES = 100
"""So many subscriptions a user may have on a connection, without being judged by what comes to them. Whoever reads a stream says
where the answer goes: so one user can have another's connection sent what that one has not asked for."""


class _Server(BaseModel):
    id: str


class _Client(BaseModel):
    number: int = Field(alias="id")
    account: str = Field(default="", alias="acc")
    key: Holder = Field(default="", alias="user")


class _Stranger(BaseModel):
    host: str = ""


class _TurnedAway(BaseModel):
    client: _Stranger


class _Sent(BaseModel):
    messages: int = Field(default=0, alias="msgs")
    bytes: int = 0


class _Opening(BaseModel):
    server: _Server
    client: _Client

    def totals(self) -> SentTotals:
        """Return whose the connection is, who has sent nothing yet."""
        at, account = ConnectionId(self.server.id, self.client.number), self.client.account
        return SentTotals(
            *(at, self.client.key, 0, 0),
            is_answerable=False,
            is_agent=is_of_agents(account),
            is_service=is_of_services(account),
            tenant=tenant_of(account),
        )


class _Ended(BaseModel):
    number: int = Field(alias="id")


class _Ending(BaseModel):
    server: _Server
    client: _Ended
    sent: _Sent = _Sent()
    received: _Sent = _Sent()

    def totals(self) -> SentTotals:
        """Return what the connection had sent, whoever's it was."""
        at, sent = ConnectionId(self.server.id, self.client.number), self.sent
        return SentTotals(at, "", sent.messages, sent.bytes, self.received.messages, is_answerable=False)


class _Connection(BaseModel):
    number: int = Field(alias="cid")
    account: str = ""
    key: Holder = Field(default="", alias="authorized_user")
    messages: int = Field(alias="in_msgs")
    bytes: int = Field(alias="in_bytes")
    received: int = Field(default=0, alias="out_msgs")
    subscriptions: int = 0
    active_at: AwareDatetime | None = Field(default=None, alias="last_activity")

    def totals(self, server: str, active_ago: float) -> SentTotals:
        """Return what the connection has sent. The name that it bears outside of the accounts that are judged is what it says."""
        is_service, is_agent = is_of_services(self.account), is_of_agents(self.account)
        own, at = self.subscriptions > _WATCHES and not is_service, ConnectionId(server, self.number)
        sent = at, self.key if is_judged(self.account) else "", self.messages, self.bytes, self.received
        return SentTotals(*sent, own, is_agent, self.subscriptions, is_service, active_ago, tenant_of(self.account))


class _Listed(BaseModel):
    connections: Sequence[_Connection] | None = None
    now: AwareDatetime | None = None

    def totals(self, server: str) -> Sequence[SentTotals]:
        """Return what each connection has sent.

        The list is begun at `now`, and who is looked at later may have been active since: by how much at most, such ones tell.
        """
        listed = self.connections or ()
        ago = [self._ago(one) for one in listed]
        took = max(0.0, -min(ago, default=0.0))
        return [one.totals(server, max(took, past)) for one, past in zip(listed, ago, strict=True)]

    def _ago(self, one: _Connection) -> float:
        return math.inf if one.active_at is None or self.now is None else (self.now - one.active_at).total_seconds()


class _List(BaseModel):
    server: _Server
    data: _Listed

    def totals(self) -> Sequence[SentTotals]:
        """Return what each connection of the server has sent."""
        return self.data.totals(self.server.id)


class NatsConnections:
    """The connections of each server of the cluster. `at_once` is how many messages somebody may send at once."""

    def __init__(self, client: Client, at_once: int = AT_ONCE) -> None:
        self._client = client
        self._inbox = client.new_inbox()
        self._glancing = f"{self._inbox}.glanced"
        self._hearer: ConnectionHearer | None = None
        self._pulls = PullHearer(client, at_once, self._hear, self._hear_traced)
        self._orders = OrderHearer(client, self._hear_order)
        self._strangers = FewMessages(client, TURNED_AWAY, _HEARD_AWAY, self._take_stranger)
        self._told = Buckets({Family.OTHERS: _TAKEN})

    @asynccontextmanager
    async def hearing(self, hearer: ConnectionHearer) -> AsyncIterator[None]:
        """Subscribe while the block runs. What a server of another version says otherwise is passed over."""

        def opened(message: Msg) -> None:
            with suppress(ValidationError):
                event = _Opening.model_validate_json(message.data)
                if is_judged(event.client.account):
                    hearer.opened(event.totals())
                    if len(message.data) > _TOLD_BYTES:
                        hearer.pulling(event.client.key, FLOOD)

        def closed(message: Msg) -> None:
            with suppress(ValidationError):
                hearer.closed(_Ending.model_validate_json(message.data).totals())

        def counted(message: Msg) -> None:
            with suppress(ValidationError):
                found = _List.model_validate_json(message.data)
                hearer.counted(found.server.id, found.totals())

        def glanced(message: Msg) -> None:
            with suppress(ValidationError):
                found = _List.model_validate_json(message.data)
                if found.data.now is not None:
                    hearer.glanced(found.server.id, found.totals(), found.data.now.timestamp())

        heard = {CONNECTED: opened, DISCONNECTED: closed, self._inbox: counted, subjects.ANY_PULLED: self._take_told}
        heard |= {subjects.PULLED: self._take_told, self._glancing: glanced}
        self._hearer = hearer
        try:
            async with AsyncExitStack() as stack:
                for subject, take in heard.items():
                    await stack.enter_async_context(taking(self._client, subject, take))
                yield
        finally:
            self._hearer = None

    async def count(self) -> None:
        """Ask by messages; each server answers when it can. Nobody is asked while the connection is away."""
        check_may_ask(self._client, subjects.SERVER_CONNECTIONS, "registry")
        with suppress(nats.errors.Error, OSError):
            await self._pulls.listen()
            await self._orders.listen()
            await self._strangers.listen()
            await ask_who_is_connected(self._client, self._inbox, sort="last", most=_MOST)
            for _ in range(_GLANCES):
                await asyncio.sleep(_GLANCE_SECONDS)
                await ask_who_is_connected(self._client, self._glancing, sort="last", most=_AT_A_GLANCE)

    def _take_told(self, message: Msg) -> None:
        """Hear what a tenant tells, whose operator may tell anything: what is too long, or comes too often, is not read."""
        tenant, now = subjects.parse_pulled_by(message.subject), asyncio.get_running_loop().time()
        size = len(message.data)
        if size > TOLD_BYTES or not isinstance(self._told.judge(tenant or "", Family.OTHERS, now, size), Admitted):
            return
        with suppress(ValidationError):
            told = ToldOfFloods.model_validate_json(message.data)
            if self._hearer is not None:
                for key, messages in told.messages.items():
                    self._hearer.pulling(key, messages, tenant)
                for user, goals in told.refused.items():
                    self._hearer.refused(UserId(user), goals, tenant)
                for one in told.traced:
                    self._hearer.traced(ConnectionId(one.server, one.number), tenant)
                for sent in told.uncounted:
                    self._hearer.uncounted(ConnectionId(sent.server, sent.number), sent.bytes, tenant)
                for user, messages in told.searched.items():
                    self._hearer.searched(UserId(user), messages, tenant)

    def _hear(self, asker: Asker, messages: int, gives_back: bool) -> None:
        if self._hearer is not None:
            self._hearer.pulling(asker.key, messages)
            if gives_back:
                self._hearer.gave_back(asker.key)

    def _hear_traced(self, connection: ConnectionId) -> None:
        if self._hearer is not None:
            self._hearer.traced(connection)

    def _hear_order(self, user: UserId) -> None:
        if self._hearer is not None:
            self._hearer.searched(user, FLOOD)

    def _take_stranger(self, message: Msg) -> None:
        with suppress(ValidationError):
            event = _TurnedAway.model_validate_json(message.data)
            if self._hearer is not None:
                self._hearer.turned_away(event.client.host)

    async def keep_out(self, names: Collection[str]) -> None:
        """Tell it in one message, which is lost if nobody listens."""
        check_may_ask(self._client, subjects.KEPT_OUT, "registry")
        with suppress(nats.errors.Error, OSError):
            told = KeptOut(by=self._inbox.rpartition(".")[2], names=tuple(islice(names, MOST_NAMED)))
            await self._client.publish(subjects.KEPT_OUT, to_json(told))

    async def end(self, connection: ConnectionId) -> None:
        """Tell its server."""
        await end_connection(self._client, connection, f"{self._inbox}.ended")
