"""Connections on which nothing is asked: how long each may stay, how many there may be, and which of them goes first.

A connection costs whoever opens it nothing, and no key is shown before the head of a request is whole. One that asks for nothing
is closed after a while, however slowly its bytes come (RFC 9110 leaves that to the server; 408 is what is meant), and where there
are too many of them the oldest goes: whoever means to ask has done so by then. Those on which something is answered, such as
streams, are left alone: of these each key has its bounds.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 10.0
"""In which the head of a request has to be whole, or what was answered has to be read further."""
MOST_IDLE = 1_000
"""How many connections of all addresses together may ask for nothing."""


class Arrivals:
    """The connections of one server.

    Args:
        head_seconds: How long each may ask for nothing.
        most_idle: How many may at a time.
        most_of_address: How many connections one address may have; 0 is any number.
    """

    def __init__(self, head_seconds: float = HEAD_SECONDS, most_idle: int = MOST_IDLE, most_of_address: int = 0) -> None:
        self._head_seconds = head_seconds
        self._most_idle = most_idle
        self._most_of_address = most_of_address
        self._idle: dict[asyncio.Transport, asyncio.TimerHandle] = {}
        """The oldest first."""
        self._open: dict[asyncio.Transport, str] = {}
        self._addresses: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._open)

    def come(self, transport: asyncio.Transport) -> bool:
        """Note a connection; False if its address has as many as it may."""
        peer = transport.get_extra_info("peername")
        address = self._open[transport] = str(peer[0]) if peer else ""
        self._addresses[address] += 1
        self.rest(transport)
        return not 0 < self._most_of_address < self._addresses[address]

    def rest(self, transport: asyncio.Transport) -> None:
        """Note that a connection asks for nothing, if that is not known yet: its time is not begun anew by some bytes."""
        if transport in self._idle or transport not in self._open:
            return
        self._wait(transport)
        if len(self._idle) > self._most_idle:
            oldest = next(iter(self._idle))
            self.work(oldest)
            oldest.abort()

    def work(self, transport: asyncio.Transport) -> None:
        """Note that something is asked on a connection, or that it is gone."""
        timer = self._idle.pop(transport, None)
        if timer is not None:
            timer.cancel()

    def go(self, transport: asyncio.Transport) -> None:
        """Note that a connection is closed."""
        self.work(transport)
        address = self._open.pop(transport)
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def _wait(self, transport: asyncio.Transport) -> None:
        unread = transport.get_write_buffer_size()
        self._idle[transport] = asyncio.get_running_loop().call_later(self._head_seconds, self._end, transport, unread)

    def _end(self, transport: asyncio.Transport, unread: int) -> None:
        """Close a connection, unless it still reads what was answered. What nobody reads would keep it open for ever."""
        del self._idle[transport]
        if transport.get_write_buffer_size() < unread:
            self._wait(transport)
        else:
            transport.abort()


def protocol_of(arrivals: Arrivals) -> type[asyncio.Protocol]:
    """Make the protocol of a server whose connections these are."""

    class WatchedProtocol(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if not arrivals.come(transport):
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            arrivals.go(self.transport)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._note()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._note()

        def _note(self) -> None:
            asked: RequestResponseCycle | None = self.cycle
            if asked is None or asked.response_complete:
                arrivals.rest(self.transport)
            else:
                arrivals.work(self.transport)

    return WatchedProtocol
