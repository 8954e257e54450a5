"""Telling of floods, to who looks after the whole server and cannot see them: who asks much, goes on though refused, or is traced.

The registry of a system hears it (`NatsConnections`), off the control planes of its tenants too. What is lost is not told again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import Field

from ioa.adapters.nats.connection import may_not_publish
from ioa.adapters.nats.overheard import AT_ONCE, FLOOD, Asker, OrderHearer, PullHearer, outside_asker
from ioa.adapters.nats.permissions import tenant_of
from ioa.adapters.nats.traces import hear_traced
from ioa.cancellation import fail_after
from ioa.ports.connections import ConnectionId
from ioa.protocol import subjects
from ioa.protocol.ids import UserId
from ioa.protocol.model import FailFast

_TELLING, _TOLD_EVERY_SECONDS = "ioa-registry-pulls", 1.0
"""Of several replicas one tells of each pull, and once in so many seconds."""
_MOST_TOLD = 2**53
"""How many messages may be told of at most, of which a float holds each number."""
_MOST_TOLD_OF, _LONGEST_KEY, TOLD_BYTES = 180, 320, 65_536
"""Of how many is told at once, those first who asked most, and how long their keys may be: so that it fits into so many bytes."""
_OF_A_REFUSAL, _MUCH_REFUSED = 20, 10_000
"""As how many messages a request counts that a service has refused, of whose sender it cannot rid itself, once that is a flood, or
that was told often enough when to come back: so 1,000 of those may come at once, and then 500 a second; and from how many on he is
told of at once, which is what he may have in a second."""
_MOST_TRACED, _SERVER_CHARS = 400, 80
_MOST_UNCOUNTED = 300
"""Of how many connections is told at once, and how long the id of their server may be: so that it fits into as many bytes."""


class _Traced(FailFast):
    server: Annotated[str, Field(max_length=_SERVER_CHARS)]
    number: Annotated[int, Field(ge=0, le=_MOST_TOLD)]


class _Uncounted(_Traced):
    bytes: Annotated[int, Field(ge=0, le=_MOST_TOLD)]


_Counts = dict[Annotated[str, Field(max_length=_LONGEST_KEY)], Annotated[int, Field(ge=0, le=_MOST_TOLD)]]


class ToldOfFloods(FailFast):
    """What one process tells at once."""

    messages: _Counts = Field(default_factory=dict)
    """How many may be sent for what was asked since it was told last, by who asks."""
    refused: _Counts = Field(default_factory=dict)
    """How many goals of users were refused since then, who go on with them although all are."""
    traced: Annotated[Sequence[_Traced], Field(max_length=_MOST_TRACED)] = ()
    """Which connections had a server write traces of what they send to services since then."""
    uncounted: Annotated[Sequence[_Uncounted], Field(max_length=_MOST_UNCOUNTED)] = ()
    """Which connections sent how many bytes since then of which their server counts nothing."""
    searched: _Counts = Field(default_factory=dict)
    """Of users for whose goals the server searches what waits, as how many messages that counts."""


def take_most(asked: Counter[str]) -> bytes:
    """Take those out of what was asked who have asked most, as many as are heard of at once, and write what is told of them."""
    told = ToldOfFloods(messages=dict(asked.most_common(_MOST_TOLD_OF)))
    asked -= Counter(told.messages)
    return _written(told)


def _written(told: ToldOfFloods) -> bytes:
    return told.model_dump_json().encode()


async def _tell(client: Client, written: bytes) -> None:
    """Tell who looks after the whole server, if this process may; what cannot be told now is not."""
    if not may_not_publish(client, subjects.PULLED):
        with suppress(nats.errors.Error, OSError):
            await client.publish(subjects.PULLED, written)


async def tell_uncounted(client: Client, server: str, uncounted: Mapping[int, int]) -> None:
    """Tell how many bytes connections have sent of which their server counts nothing, by number; of too many those with most."""
    most = Counter(uncounted).most_common(_MOST_UNCOUNTED)
    told = [_Uncounted(server=server, number=number, bytes=size) for number, size in most]
    await _tell(client, _written(ToldOfFloods(uncounted=told)))


class NatsPullTeller:
    """Tells what agents and users of a tenant with a name ask JetStream for, which the tenant's own control plane alone hears.

    Who looks after the whole server is told once in a second, by one of the replicas for each request. `at_once` is how many
    messages somebody may send at once.
    """

    def __init__(self, client: Client, at_once: int = AT_ONCE) -> None:
        self._client = client
        self._asked = Counter[str]()
        self._searched = dict[str, int]()
        self._traced = NatsTraceTeller(client)
        self._pulls = PullHearer(client, at_once, self._hear, self._traced.note, _TELLING)
        self._orders = OrderHearer(client, self._hear_order)

    async def follow(self) -> None:
        """Tell, for ever. What is lost while the connection is away is not told again."""
        while True:
            with suppress(nats.errors.Error, OSError):
                await self._pulls.listen()
                await self._orders.listen()
                if self._asked:
                    await _tell(self._client, take_most(self._asked))
                if self._searched:
                    told, self._searched = ToldOfFloods(searched=self._searched), {}
                    await _tell(self._client, _written(told))
            await self._traced.tell()
            await asyncio.sleep(_TOLD_EVERY_SECONDS)

    def _hear_order(self, user: UserId) -> None:
        self._searched[user] = FLOOD

    def _hear(self, asker: Asker, messages: int, _gives_back: bool) -> None:
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
            told = ToldOfFloods(refused=dict(self._refused.most_common(_MOST_TOLD_OF)))
            self._refused.clear()
            if told.refused:
                await _tell(self._client, _written(told))


class NatsFlooderTeller:
    """Tells who goes on asking services that refuse him, as soon as that is a flood. What is lost is told when he goes on.

    He is told of by his key, which the server shows, so that he is put off before he is counted by what he has sent: where a
    subject names nobody, the server drops others' requests as it drops his; and what nobody answers it keeps for a while, and looks
    through whenever anybody of the account ends a subscription with a wildcard. What is his of that goes with his connections.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._refused = Counter[str]()
        self._is_much = asyncio.Event()

    def note(self, message: Msg) -> None:
        """Count one more request that was refused."""
        if (asker := outside_asker(message)) is not None and len(asker.key) <= _LONGEST_KEY:
            self._refused[asker.key] += _OF_A_REFUSAL
            if self._refused[asker.key] >= _MUCH_REFUSED:
                self._is_much.set()

    async def follow(self) -> None:
        """Tell, for ever. Of those who are refused less often in a second nothing is told."""
        while True:
            with suppress(TimeoutError):
                async with fail_after(_TOLD_EVERY_SECONDS):
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
            await _tell(self._client, _written(ToldOfFloods(traced=told)))

    async def follow(self) -> None:
        """Tell, for ever, at once and then once in a second."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            await self.tell()
            await asyncio.sleep(_TOLD_EVERY_SECONDS)
