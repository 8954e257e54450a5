"""Who is connected to nats-server from outside, read off its system account, as `Connections`.

The control plane imports three things of that account (`ioa.adapters.nats.authorization`): a list of connections with what each has
sent, the events of its connections, and the request that ends one. Where the authorization is older nobody answers, and nothing is
told.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import islice

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json

from ioa.adapters.nats.permissions import CONNECTED, DISCONNECTED, disconnecting, is_outside
from ioa.adapters.nats.sinks import MessageSink
from ioa.ports.connections import ConnectionHearer, ConnectionId, SentTotals
from ioa.protocol import subjects
from ioa.protocol.kept_out import MOST_NAMED, KeptOut

_MOST = 4_096
"""How many connections a server tells of, those first that were active last."""


class _Server(BaseModel):
    id: str


class _Client(BaseModel):
    number: int = Field(alias="id")
    account: str = Field(default="", alias="acc")
    key: str = Field(default="", alias="user")


class _Sent(BaseModel):
    messages: int = Field(default=0, alias="msgs")
    bytes: int = 0


class _Event(BaseModel):
    server: _Server
    client: _Client
    sent: _Sent = _Sent()

    def totals(self) -> SentTotals:
        """Return what the connection had sent."""
        at = ConnectionId(self.server.id, self.client.number)
        return SentTotals(at, self.client.key, self.sent.messages, self.sent.bytes)


class _Connection(BaseModel):
    number: int = Field(alias="cid")
    account: str = ""
    key: str = Field(default="", alias="authorized_user")
    messages: int = Field(alias="in_msgs")
    bytes: int = Field(alias="in_bytes")

    def totals(self, server: str) -> SentTotals:
        """Return what the connection has sent."""
        return SentTotals(ConnectionId(server, self.number), self.key, self.messages, self.bytes)


class _Listed(BaseModel):
    connections: Sequence[_Connection] | None = None


class _List(BaseModel):
    server: _Server
    data: _Listed


class NatsConnections:
    """The connections of each server of the cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = client.new_inbox()

    @asynccontextmanager
    async def hearing(self, hearer: ConnectionHearer) -> AsyncIterator[None]:
        """Subscribe while the block runs. What a server of another version says otherwise is passed over."""

        def opened(message: Msg) -> None:
            with suppress(ValidationError):
                event = _Event.model_validate_json(message.data)
                if is_outside(event.client.account):
                    hearer.opened(event.totals())

        def closed(message: Msg) -> None:
            with suppress(ValidationError):
                event = _Event.model_validate_json(message.data)
                if is_outside(event.client.account):
                    hearer.closed(event.totals())

        def counted(message: Msg) -> None:
            with suppress(ValidationError):
                found = _List.model_validate_json(message.data)
                server = found.server.id
                hearer.counted(server, [one.totals(server) for one in found.data.connections or () if is_outside(one.account)])

        subscriptions = [
            await self._client.subscribe(subject, future=MessageSink(take))
            for subject, take in ((CONNECTED, opened), (DISCONNECTED, closed), (self._inbox, counted))
        ]
        try:
            yield
        finally:
            for subscription in subscriptions:
                if not self._client.is_closed:
                    await subscription.unsubscribe()

    async def count(self) -> None:
        """Ask by one message; each server answers when it can. Nobody is asked while the connection is away."""
        with suppress(nats.errors.Error, OSError):
            wanted = to_json({"auth": True, "sort": "last", "limit": _MOST})
            await self._client.publish(subjects.SERVER_CONNECTIONS, wanted, reply=self._inbox)

    async def keep_out(self, names: Collection[str]) -> None:
        """Tell it in one message, which is lost if nobody listens."""
        with suppress(nats.errors.Error, OSError):
            told = KeptOut(by=self._inbox.rpartition(".")[2], names=tuple(islice(names, MOST_NAMED)))
            await self._client.publish(subjects.KEPT_OUT, to_json(told))

    async def end(self, connection: ConnectionId) -> None:
        """Tell its server, which heeds only who wants an answer. None is waited for: while one is ended, the next one sends."""
        with suppress(nats.errors.Error, OSError):
            request = to_json({"cid": connection.number})
            await self._client.publish(disconnecting(connection.server), request, reply=f"{self._inbox}.ended")
