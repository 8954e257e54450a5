"""Guests by tokens who are connected, as servers know them: by a name that says who it is, whose token let him in, by which key.

A server keeps of what an auth callout has said little besides that name, and tells it to whoever lists its connections. So it is
known of each guest by which token he came, wherever he is connected, whichever callout let him in, and whether that still runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Annotated

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ioa.adapters.nats.server_requests import ask_who_is_connected, check_may_ask, end_connection
from ioa.adapters.nats.sinks import taking
from ioa.ports.connections import ConnectionId, ShownToken
from ioa.protocol import subjects

_BEHIND = "#"
"""What is between who a guest is, the key, and whose token it is. Neither a public key nor a name holds it."""
_OF_WHOM = ":"
"""In what servers call a guest, and no holder of a key."""
_UNKNOWN_KEY = "unknown"
"""Of guests whom an older callout let in, which did not say it: as long as no thumbprint."""
_PAGE = 1_024
_ANSWER_SECONDS = 2.0
"""How long servers may take to list their connections. Of one that takes longer they are looked at the next time."""


def known_by(holder: str, token: ShownToken) -> str:
    """Return as what servers know a guest who was let in by a token."""
    return _BEHIND.join((holder, token.key, token.owner))


def holder_of(known: str) -> str:
    """Return who it is whom servers know so: a guest whichever token let him in, and a public key as it is."""
    return known.partition(_BEHIND)[0]


Holder = Annotated[str, BeforeValidator(lambda known: holder_of(known) if isinstance(known, str) else known)]
"""Who it is that a server tells of."""


class _Server(BaseModel):
    id: str


class _Connection(BaseModel):
    number: int = Field(alias="cid")
    known: str = Field(default="", alias="authorized_user")

    @property
    def token(self) -> ShownToken | None:
        holder, *said = self.known.split(_BEHIND)
        key, owner = (*said, "", "")[:2]
        return ShownToken(key or _UNKNOWN_KEY, owner) if _OF_WHOM in holder else None


class _Listed(BaseModel):
    total: int = 0
    connections: Sequence[_Connection] | None = None


class _Page(BaseModel):
    server: _Server
    data: _Listed


class NatsGuests:
    """The guests on each server of a cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def connected(self) -> Mapping[ConnectionId, ShownToken]:
        """Return the connections of guests, and what let each in.

        Of whom an older callout let in that is not known.

        Raises:
            ForbiddenError: This connection may not list any, since the authorization of the servers is older.
        """
        check_may_ask(self._client, subjects.SERVER_CONNECTIONS, "auth callout")
        found: dict[ConnectionId, ShownToken] = {}
        for offset in count(0, _PAGE):
            pages = await self._listed(offset)
            for page in pages:
                for one in page.data.connections or ():
                    if one.token is not None:
                        found[ConnectionId(page.server.id, one.number)] = one.token
            if not any(page.data.total > offset + _PAGE for page in pages):
                break
        return found

    async def end(self, connections: Collection[ConnectionId]) -> None:
        """Have their servers end them. Nothing is waited for: who is still there is seen so the next time."""
        inbox = self._client.new_inbox()
        for one in connections:
            await end_connection(self._client, one, inbox)

    async def _listed(self, offset: int) -> Sequence[_Page]:
        pages: list[_Page] = []

        def take(message: Msg) -> None:
            with suppress(ValidationError):
                pages.append(_Page.model_validate_json(message.data))

        inbox = self._client.new_inbox()
        with suppress(nats.errors.Error, OSError):
            async with taking(self._client, inbox, take):
                await ask_who_is_connected(self._client, inbox, sort="cid", most=_PAGE, offset=offset)
                await asyncio.sleep(_ANSWER_SECONDS)
        return pages
