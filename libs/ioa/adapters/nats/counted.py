"""What the one server that a connection is to has counted of its connections, by who is at the other end of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import nats.errors
from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json

from ioa.adapters.kernel_sockets import same_peer
from ioa.adapters.nats.flood_tellers import tell_uncounted
from ioa.cancellation import heeding_cancellation
from ioa.errors import UnavailableError
from ioa.ports.sockets import Counted, Peer
from ioa.protocol import subjects

_AT_ONCE = 1_024
"""Of how many connections the server tells in one answer."""
_ENDED_AT_ONCE = 16
"""Of how many connections that have ended the server is asked in one look: it looks for each among those of before."""
_ENDED = 1
"""As the server calls the state of connections that have ended."""
_PATIENCE_SECONDS = 2.0


class _Connection(BaseModel):
    number: int = Field(alias="cid")
    host: str = Field(alias="ip")
    port: int
    messages: int = Field(alias="in_msgs")
    bytes: int = Field(alias="in_bytes")


class _Server(BaseModel):
    id: str


class _Page(BaseModel):
    connections: Sequence[_Connection] | None = None
    total: int = 0


class _Answer(BaseModel):
    server: _Server
    data: _Page


class NatsCountingServer:
    """The server that a connection is to now, as `CountingServer`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def id(self) -> str | None:
        """As the server said at connecting."""
        return self._client._server_info["server_id"] if self._client.is_connected else None

    @property
    def port(self) -> int:
        """As the server knows it, which is not where clients go who are led there."""
        return int(self._client._server_info["port"])

    @property
    def largest_message(self) -> int:
        """As the server said at connecting."""
        return int(self._client._server_info["max_payload"])

    @property
    def own(self) -> Peer | None:
        """The address of this connection, as it is seen from here."""
        transport = self._client._transport
        if not isinstance(transport, TcpTransport) or transport._io_writer is None:
            return None
        name = transport._io_writer.get_extra_info("sockname")
        return None if name is None else same_peer(*name[:2])

    async def counted(self, wanted: Collection[Peer]) -> Mapping[Peer, Counted]:
        """Ask page after page, until all have come who are wanted, or there are no more."""
        found, times, offset = dict[Peer, Counted](), Counter[Peer](), 0
        while True:
            page = await self._page(sort="cid", limit=_AT_ONCE, offset=offset)
            for one in page.connections or ():
                with suppress(ValueError):
                    peer = same_peer(one.host, one.port)
                    found[peer] = Counted(one.number, one.messages, one.bytes)
                    times[peer] += 1
            offset += _AT_ONCE
            if offset >= page.total or found.keys() >= set(wanted):
                return {peer: counted for peer, counted in found.items() if times[peer] == 1}

    async def counted_to_the_end(self, numbers: Collection[int]) -> Mapping[int, Counted]:
        """Ask of each, of too many of those that came first."""
        found = dict[int, Counted]()
        for number in sorted(numbers)[:_ENDED_AT_ONCE]:
            for one in (await self._page(cid=number, state=_ENDED)).connections or ():
                found[one.number] = Counted(one.number, one.messages, one.bytes)
        return found

    async def tell_uncounted(self, uncounted: Mapping[int, int]) -> None:
        """Tell the registry, as services tell it of floods."""
        if self.id is not None:
            await tell_uncounted(self._client, self.id, uncounted)

    async def _page(self, **options: str | int) -> _Page:
        """Ask this server alone, by its name: each of a cluster would answer."""
        name = self._client._server_info.get("server_name", "")
        asked = {"server_name": name, "exact_match": True, **options}
        try:
            with heeding_cancellation():
                answer = await self._client.request(subjects.SERVER_CONNECTIONS, to_json(asked), timeout=_PATIENCE_SECONDS)
            said = _Answer.model_validate_json(answer.data)
        except (nats.errors.Error, OSError, ValidationError) as error:
            raise UnavailableError(f"nats-server does not list its connections: {str(error) or type(error).__name__}.") from None
        if said.server.id != self.id:
            raise UnavailableError("Another nats-server lists its connections: each of a cluster needs a name of its own.")
        return said.data
