"""Who is connected to nats-server from outside, read off its system account, as `Connections`.

The control plane imports three things of that account (`ioa.adapters.nats.authorization`): a list of connections with what each has
sent, the events of its connections, and the request that ends one. Pulls, by which few requests have much sent, are heard as they
come, with who asks: the server says it in place of whatever a client says. Where the authorization is older nobody answers, and
nothing is told.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import islice
from typing import Annotated, Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import AwareDatetime, BaseModel, Field, ValidationError
from pydantic_core import to_json

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.headers import UNREAD
from ioa.adapters.nats.keys import LAST_OF
from ioa.adapters.nats.permissions import (
    CONNECTED,
    DISCONNECTED,
    OVERHEARD,
    PULLS,
    SHOWN_ASKER,
    TAKEN,
    TURNED_AWAY,
    disconnecting,
    is_judged,
    is_of_agents,
    is_of_services,
    is_outside,
    tenant_of,
)
from ioa.adapters.nats.sinks import MessageSink, taking
from ioa.adapters.nats.traces import begins_like_one, hear_traced
from ioa.errors import ForbiddenError, InvalidInputError
from ioa.ports.connections import ConnectionHearer, ConnectionId, SentTotals
from ioa.protocol import subjects
from ioa.protocol.ids import UserId
from ioa.protocol.kept_out import MOST_NAMED, KeptOut
from ioa.protocol.model import FailFast
from ioa.quotas import Admitted, Buckets, Family, Rate

_MOST = 4_096
"""How many connections a server tells of, those first that were active last."""
_GLANCES, _AT_A_GLANCE, _GLANCE_SECONDS = 6, 64, 0.01
"""How many times a server is asked besides for some that were active last, for how many, and in how many seconds each time."""
_AT_ONCE = 20_000
"""How many messages somebody may send at once, if nobody says otherwise."""
_HEARD, _HEARD_AT_LEAST = 2.0, 1.5
"""Of how many pulls and acknowledgements is heard between two counts at most and at least, for each message that somebody may send
at once: who sends more is counted by what he sends. Of fewer, what costs the server much is hidden behind what costs it nothing."""
_PULL_BYTES = 4_096
"""How long a pull may be. A longer one is not read, and counts as a flood."""
_DEAREST, _CHEAPEST = 20_000, 20
"""As how many messages a pull counts at most, and at least: the server keeps each for a while, with its reply subject. So an agent
pulls 500 times a second, and 2,000 times at once; one with sixty slots that are idle does 13 times."""
_FLOOD = 100_000
"""More than anybody may have sent at once."""
_NEXT = b"+NXT"
"""How an acknowledgement begins that asks for the next message. No client of ours asks so, and it is worth a flood."""
_BACK, _BACK_COUNTS = b"-NAK", 300
"""How an acknowledgement begins that gives a goal back, and as how many messages it counts: 133 at once, and then 33 a second. Each
has the server give the goal out again, and another agent begin it; an honest agent gives back all that it does when it stops."""
_TAKEN_BYTES = 256
"""How long an acknowledgement may be. What says in more how long a goal is to wait the server cannot read: it writes all of it to
its log, each byte as four characters, and keeps what comes meanwhile."""
_OVERHEARD, _BYTES_COUNT = 100, 100
"""As how many messages a request counts that the registry overhears, and for how many bytes once more. The server answers each, or
several services do; a client asks once with each connection, and whoever looks how everything stands some times a minute. So
somebody may have asked 400 times at once, and then asks 100 times a second."""
_LOOKED_AT = 20
"""At how many goals is looked between two counts, which may have 256 kB each: who floods is among them."""
_HEARD_AWAY = 200
"""Of how many that were not let in is heard between two counts: whoever comes without end is among them."""
_TELLING, _TOLD_EVERY_SECONDS = "ioa-registry-pulls", 1.0
"""Of several replicas one tells of each pull, and once in so many seconds."""
_MOST_TOLD = 2**53
"""How many messages may be told of at most, of which a float holds each number."""
_MOST_TOLD_OF, _LONGEST_KEY, _TOLD_BYTES = 180, 320, 65_536
"""Of how many is told at once, those first who asked most, and how long their keys may be: so that it fits into so many bytes."""
_OF_A_REFUSAL, _MUCH_REFUSED = 20, 10_000
"""As how many messages a request counts that a service has refused, of whose sender it cannot rid itself, once that is a flood: so
2,000 of those may come at once, and then 500 a second; and from how many on he is told of at once, which is what he may have in a
second."""
_MOST_TRACED, _SERVER_CHARS = 400, 80
"""Of how many connections is told at once, and how long the id of their server may be: so that it fits into as many bytes."""
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
    key: str = Field(default="", alias="user")


class _Stranger(BaseModel):
    host: str = ""


class _TurnedAway(BaseModel):
    client: _Stranger


class _Sent(BaseModel):
    messages: int = Field(default=0, alias="msgs")
    bytes: int = 0


class _Event(BaseModel):
    server: _Server
    client: _Client
    sent: _Sent = _Sent()
    received: _Sent = _Sent()

    def totals(self) -> SentTotals:
        """Return what the connection had sent."""
        at = ConnectionId(self.server.id, self.client.number)
        sent, is_service = self.sent, is_of_services(self.client.account)
        return SentTotals(
            *(at, self.client.key, sent.messages, sent.bytes, self.received.messages),
            is_answerable=False,
            is_service=is_service,
            tenant=tenant_of(self.client.account),
        )


class _Connection(BaseModel):
    number: int = Field(alias="cid")
    account: str = ""
    key: str = Field(default="", alias="authorized_user")
    messages: int = Field(alias="in_msgs")
    bytes: int = Field(alias="in_bytes")
    received: int = Field(default=0, alias="out_msgs")
    subscriptions: int = 0
    active_at: AwareDatetime | None = Field(default=None, alias="last_activity")

    def totals(self, server: str, active_ago: float) -> SentTotals:
        """Return what the connection has sent."""
        is_service, is_agent = is_of_services(self.account), is_of_agents(self.account)
        own, at = self.subscriptions > _WATCHES and not is_service, ConnectionId(server, self.number)
        sent = at, self.key, self.messages, self.bytes, self.received
        return SentTotals(*sent, own, is_agent, self.subscriptions, is_service, active_ago, tenant_of(self.account))


class _Listed(BaseModel):
    connections: Sequence[_Connection] | None = None
    now: AwareDatetime | None = None

    def totals(self, server: str) -> Sequence[SentTotals]:
        """Return what each connection has sent of those that are judged.

        The list is begun at `now`, and who is looked at later may have been active since: by how much at most, such ones tell.
        """
        listed = self.connections or ()
        ago = [self._ago(one) for one in listed]
        took = max(0.0, -min(ago, default=0.0))
        return [one.totals(server, max(took, past)) for one, past in zip(listed, ago, strict=True) if is_judged(one.account)]

    def _ago(self, one: _Connection) -> float:
        return math.inf if one.active_at is None or self.now is None else (self.now - one.active_at).total_seconds()


class _List(BaseModel):
    server: _Server
    data: _Listed

    def totals(self) -> Sequence[SentTotals]:
        """Return what each connection of the server has sent of those that are judged."""
        return self.data.totals(self.server.id)


class _Asker(BaseModel):
    account: str = Field(alias="acc")
    key: str = Field(alias="user")


class _Traced(FailFast):
    server: Annotated[str, Field(max_length=_SERVER_CHARS)]
    number: Annotated[int, Field(ge=0, le=_MOST_TOLD)]


_Counts = dict[Annotated[str, Field(max_length=_LONGEST_KEY)], Annotated[int, Field(ge=0, le=_MOST_TOLD)]]


class _Pulled(FailFast):
    messages: _Counts = Field(default_factory=dict)
    """How many may be sent for what was asked since it was told last, by who asks."""
    refused: _Counts = Field(default_factory=dict)
    """How many goals of users were refused since then, who go on with them although all are."""
    traced: Annotated[Sequence[_Traced], Field(max_length=_MOST_TRACED)] = ()
    """Which connections had a server write traces of what they send to services since then."""
    searched: _Counts = Field(default_factory=dict)
    """Of users for whose goals the server searches what waits, as how many messages that counts."""


def heartbeats_asked(request: bytes) -> int:
    """Return how often a pull has the server say at most that there is nothing: once in each `idle_heartbeat` until it expires."""
    fields = _fields_of(request)
    if fields is None:
        return _DEAREST
    times = {
        name: [value for said, value in fields if said == name and type(value) is int] for name in ("expires", "idle_heartbeat")
    }
    beats = [value for value in times["idle_heartbeat"] if value > 0]
    return min(max([1, *(longest // min(beats) for longest in times["expires"] if beats)]), _DEAREST)


def _fields_of(request: bytes) -> Sequence[tuple[str, Any]] | None:
    """Read the fields of a request, none if it has none; None if it is nested too deep."""
    try:
        read = json.loads(request.decode("utf-8", "replace"), object_pairs_hook=tuple, parse_int=_whole)
    except ValueError:
        return ()
    except RecursionError:
        return None
    return [(name.casefold(), value) for name, value in read] if isinstance(read, tuple) else ()


def _whole(digits: str) -> int:
    """Read a number; of one that is longer than Go's, which it refuses where it means something, the beginning."""
    return int(digits[:20])


class _Pulls:
    """What agents ask of JetStream, and what else no service answers, of which so much is heard between two counts.

    Once a trace has come nothing is heard from the next count to the one after: more of them would have the connection ended.
    """

    def __init__(
        self,
        client: Client,
        at_once: int,
        hear: Callable[[_Asker, int, bool], None],
        hear_traced: Callable[[ConnectionId], None],
        queue: str = "",
    ) -> None:
        self._client = client
        self._heard, self._at_least = int(_HEARD * at_once), int(_HEARD_AT_LEAST * at_once)
        self._queue = queue
        self._hear = hear
        self._hear_traced = hear_traced
        self._was_traced = False
        self._subscriptions: list[Subscription] = []
        self._left = 0

    async def listen(self) -> None:
        """Hear of more."""
        was_traced, self._was_traced = self._was_traced, False
        if was_traced or self._left < self._at_least:
            self._left = 0 if was_traced else self._heard
            while self._subscriptions:  # else each would be heard, and counted, by both
                await self._subscriptions.pop().unsubscribe()
            if was_traced:
                return
            heard = {f"{PULLS}*": self._take, TAKEN: self._take_next} | dict.fromkeys(OVERHEARD, self._overhear)
            for subject, take in heard.items():
                self._subscriptions.append(await self._client.subscribe(subject, self._queue, future=MessageSink(take)))
                await self._subscriptions[-1].unsubscribe(limit=self._heard)

    def _take(self, message: Msg) -> None:
        self._count(message, max(_CHEAPEST, heartbeats_asked(message.data)) if len(message.data) <= _PULL_BYTES else _FLOOD)

    def _take_next(self, message: Msg) -> None:
        is_flood = message.data.startswith(_NEXT) or len(message.data) > _TAKEN_BYTES
        if is_flood or not message.data.startswith(_BACK):
            self._count(message, _FLOOD if is_flood else 0)
        else:
            self._count(message, _BACK_COUNTS, gives_back=True)

    def _overhear(self, message: Msg) -> None:
        self._count(message, _OVERHEARD + len(message.data) // _BYTES_COUNT)

    def _count(self, message: Msg, messages: int, *, gives_back: bool = False) -> None:
        self._left -= 1
        if not messages:
            return
        if hear_traced(message, self._hear_traced):
            self._was_traced = True
            return
        if (asker := _outside_asker(message)) is not None:
            self._hear(asker, messages, gives_back)


def _outside_asker(message: Msg) -> _Asker | None:
    """Return who asks, as the server shows it, if that is somebody outside."""
    with suppress(ValidationError):
        asker = _Asker.model_validate_json((message.headers or {}).get(SHOWN_ASKER, ""))
        return asker if is_outside(asker.account) else None
    return None


class _Few:
    """Some of what comes on a subject: so many messages between two counts."""

    def __init__(self, client: Client, subject: str, most: int, take: Callable[[Msg], None]) -> None:
        self._client = client
        self._subject = subject
        self._most = most
        self._take = take
        self._left = 0

    async def listen(self) -> None:
        """Hear of more."""
        if not self._left:
            self._left = self._most
            subscription = await self._client.subscribe(self._subject, future=MessageSink(self._take_one))
            await subscription.unsubscribe(limit=self._most)

    def _take_one(self, message: Msg) -> None:
        self._left -= 1
        self._take(message)


class _Orders:
    """Goals as users publish them, of which a few are looked at between two counts.

    By its headers one has the server search the stream, with it locked, for the last message of a pattern: 6 ms where 40,000 wait.
    And a trace may come instead of one, see `traces`: by whom says the subject, whoever has written it.
    """

    def __init__(self, client: Client, hear: Callable[[UserId], None]) -> None:
        self._hear = hear
        self._few = [_Few(client, subject, _LOOKED_AT, self._take) for subject in (subjects.ANY_GOAL, subjects.ANY_ADDRESSED_GOAL)]

    async def listen(self) -> None:
        """Look at more."""
        for few in self._few:
            await few.listen()

    def _take(self, message: Msg) -> None:
        headers = message.headers or {}
        costs_much = UNREAD in headers or not {"*", ">"}.isdisjoint(headers.get(LAST_OF, ""))
        if costs_much or (not message.reply and begins_like_one(message.data, headers)):
            with suppress(InvalidInputError):
                self._hear(subjects.parse_goal_subject(message.subject)[0])


def take_most(asked: Counter[str]) -> bytes:
    """Take those out of what was asked who have asked most, as many as are heard of at once, and write what is told of them."""
    told = _Pulled(messages=dict(asked.most_common(_MOST_TOLD_OF)))
    asked -= Counter(told.messages)
    return _written(told)


def _written(told: _Pulled) -> bytes:
    return told.model_dump_json().encode()


async def _tell(client: Client, written: bytes) -> None:
    """Tell who looks after the whole server, if this process may; what cannot be told now is not."""
    if not may_not_publish(client, subjects.PULLED):
        with suppress(nats.errors.Error, OSError):
            await client.publish(subjects.PULLED, written)


class NatsPullTeller:
    """Tells what agents and users of a tenant with a name ask JetStream for, which the tenant's own control plane alone hears.

    Who looks after the whole server is told once in a second, by one of the replicas for each request. `at_once` is how many
    messages somebody may send at once.
    """

    def __init__(self, client: Client, at_once: int = _AT_ONCE) -> None:
        self._client = client
        self._asked = Counter[str]()
        self._searched = dict[str, int]()
        self._traced = NatsTraceTeller(client)
        self._pulls = _Pulls(client, at_once, self._hear, self._traced.note, _TELLING)
        self._orders = _Orders(client, self._hear_order)

    async def follow(self) -> None:
        """Tell, for ever. What is lost while the connection is away is not told again."""
        while True:
            with suppress(nats.errors.Error, OSError):
                await self._pulls.listen()
                await self._orders.listen()
                if self._asked:
                    await _tell(self._client, take_most(self._asked))
                if self._searched:
                    told, self._searched = _Pulled(searched=self._searched), {}
                    await _tell(self._client, _written(told))
            await self._traced.tell()
            await asyncio.sleep(_TOLD_EVERY_SECONDS)

    def _hear_order(self, user: UserId) -> None:
        self._searched[user] = _FLOOD

    def _hear(self, asker: _Asker, messages: int, _gives_back: bool) -> None:
        if tenant_of(asker.account) is not None and len(asker.key) <= _LONGEST_KEY:
            self._asked[asker.key] = min(_MOST_TOLD, self._asked[asker.key] + messages)


class NatsRefusalTeller:
    """Tells whose goals are refused that goes on with them, once in a second. What is lost is not told again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._refused = Counter[str]()

    def note(self, user: UserId) -> None:
        """Count one more goal of a user."""
        self._refused[user] += 1

    async def follow(self) -> None:
        """Tell, for ever."""
        while True:
            await asyncio.sleep(_TOLD_EVERY_SECONDS)
            told = _Pulled(refused=dict(self._refused.most_common(_MOST_TOLD_OF)))
            self._refused.clear()
            if told.refused:
                await _tell(self._client, _written(told))


class NatsFlooderTeller:
    """Tells who goes on asking services that refuse him, as soon as that is a flood. What is lost is told when he goes on.

    He is told of by his key, which the server shows, so that he is put off before he is counted by what he has sent: where a
    subject names nobody, the server drops others' requests as it drops his.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._refused = Counter[str]()
        self._is_much = asyncio.Event()

    def note(self, message: Msg) -> None:
        """Count one more request that was refused."""
        if (asker := _outside_asker(message)) is not None and len(asker.key) <= _LONGEST_KEY:
            self._refused[asker.key] += _OF_A_REFUSAL
            if self._refused[asker.key] >= _MUCH_REFUSED:
                self._is_much.set()

    async def follow(self) -> None:
        """Tell, for ever. Of those who are refused less often in a second nothing is told."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_TOLD_EVERY_SECONDS):
                    await self._is_much.wait()
            self._is_much.clear()
            much = Counter({key: messages for key, messages in self._refused.items() if messages >= _MUCH_REFUSED})
            self._refused.clear()
            if much:
                await _tell(self._client, take_most(much))


class NatsTraceTeller:
    """Tells which connections have a server write traces to services (`traces`). What is lost is told when they do so again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._traced: dict[ConnectionId, None] = {}
        self._noted = asyncio.Event()

    def hear(self, message: Msg) -> bool:
        """Note of whom a message tells that the server has written itself; whether it is such a one, and nobody's request."""
        return hear_traced(message, self.note)

    def note(self, connection: ConnectionId) -> None:
        """Keep one more to be told of."""
        if len(self._traced) < _MOST_TRACED and connection.number <= _MOST_TOLD:
            self._traced[connection] = None
        self._noted.set()

    async def tell(self) -> None:
        """Tell of all that were noted since the last time."""
        told, self._traced = [_Traced(server=one.server, number=one.number) for one in self._traced], {}
        if told:
            await _tell(self._client, _written(_Pulled(traced=told)))

    async def follow(self) -> None:
        """Tell, for ever, at once and then once in a second."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            await self.tell()
            await asyncio.sleep(_TOLD_EVERY_SECONDS)


class NatsConnections:
    """The connections of each server of the cluster. `at_once` is how many messages somebody may send at once."""

    def __init__(self, client: Client, at_once: int = _AT_ONCE) -> None:
        self._client = client
        self._inbox = client.new_inbox()
        self._glancing = f"{self._inbox}.glanced"
        self._hearer: ConnectionHearer | None = None
        self._pulls = _Pulls(client, at_once, self._hear, self._hear_traced)
        self._orders = _Orders(client, self._hear_order)
        self._strangers = _Few(client, TURNED_AWAY, _HEARD_AWAY, self._take_stranger)
        self._told = Buckets({Family.OTHERS: _TAKEN})

    @asynccontextmanager
    async def hearing(self, hearer: ConnectionHearer) -> AsyncIterator[None]:
        """Subscribe while the block runs. What a server of another version says otherwise is passed over."""

        def opened(message: Msg) -> None:
            with suppress(ValidationError):
                event = _Event.model_validate_json(message.data)
                if is_judged(event.client.account):
                    hearer.opened(event.totals())

        def closed(message: Msg) -> None:
            with suppress(ValidationError):
                event = _Event.model_validate_json(message.data)
                if is_judged(event.client.account):
                    hearer.closed(event.totals())

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
        self._check_may(subjects.SERVER_CONNECTIONS)
        with suppress(nats.errors.Error, OSError):
            await self._pulls.listen()
            await self._orders.listen()
            await self._strangers.listen()
            await self._ask(_MOST, self._inbox)
            for _ in range(_GLANCES):
                await asyncio.sleep(_GLANCE_SECONDS)
                await self._ask(_AT_A_GLANCE, self._glancing)

    async def _ask(self, most: int, inbox: str) -> None:
        if not self._client.is_connected:  # nats-py would keep it, and ask so many times at once when the server is back
            return
        wanted = to_json({"auth": True, "sort": "last", "limit": most})
        await self._client.publish(subjects.SERVER_CONNECTIONS, wanted, reply=inbox)

    def _check_may(self, subject: str) -> None:
        if may_not_publish(self._client, subject):
            raise ForbiddenError(
                f"The authorization of nats-server is older than this registry, which may not use {subject}.",
                hint="Run `ioa credentials upgrade`, and restart nats-server.",
            )

    def _take_told(self, message: Msg) -> None:
        """Hear what a tenant tells, whose operator may tell anything: what is too long, or comes too often, is not read."""
        tenant, now = subjects.parse_pulled_by(message.subject), asyncio.get_running_loop().time()
        size = len(message.data)
        if size > _TOLD_BYTES or not isinstance(self._told.judge(tenant or "", Family.OTHERS, now, size), Admitted):
            return
        with suppress(ValidationError):
            told = _Pulled.model_validate_json(message.data)
            if self._hearer is not None:
                for key, messages in told.messages.items():
                    self._hearer.pulling(key, messages, tenant)
                for user, goals in told.refused.items():
                    self._hearer.refused(UserId(user), goals, tenant)
                for one in told.traced:
                    self._hearer.traced(ConnectionId(one.server, one.number), tenant)
                for user, messages in told.searched.items():
                    self._hearer.searched(UserId(user), messages, tenant)

    def _hear(self, asker: _Asker, messages: int, gives_back: bool) -> None:
        if self._hearer is not None:
            self._hearer.pulling(asker.key, messages)
            if gives_back:
                self._hearer.gave_back(asker.key)

    def _hear_traced(self, connection: ConnectionId) -> None:
        if self._hearer is not None:
            self._hearer.traced(connection)

    def _hear_order(self, user: UserId) -> None:
        if self._hearer is not None:
            self._hearer.searched(user, _FLOOD)

    def _take_stranger(self, message: Msg) -> None:
        with suppress(ValidationError):
            event = _TurnedAway.model_validate_json(message.data)
            if self._hearer is not None:
                self._hearer.turned_away(event.client.host)

    async def keep_out(self, names: Collection[str]) -> None:
        """Tell it in one message, which is lost if nobody listens."""
        self._check_may(subjects.KEPT_OUT)
        with suppress(nats.errors.Error, OSError):
            told = KeptOut(by=self._inbox.rpartition(".")[2], names=tuple(islice(names, MOST_NAMED)))
            await self._client.publish(subjects.KEPT_OUT, to_json(told))

    async def end(self, connection: ConnectionId) -> None:
        """Tell its server, which heeds only who wants an answer. None is waited for: while one is ended, the next one sends."""
        with suppress(nats.errors.Error, OSError):
            request = to_json({"cid": connection.number})
            await self._client.publish(disconnecting(connection.server), request, reply=f"{self._inbox}.ended")
