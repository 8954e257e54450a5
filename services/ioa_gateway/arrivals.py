"""Connections on which nothing is asked: how long each may stay, how many there may be, and which of them goes first.

A connection costs whoever opens it nothing, and no key is shown before the head of a request is whole. One that asks for nothing
is closed after a while, however slowly its bytes come (RFC 9110 leaves that to the server; 408 is what is meant), and where there
are too many of them the oldest goes: whoever means to ask has done so by then. A request that waits until it may be begun is asked
for nothing yet, and so is one whose answer is not read, or that has another one waiting behind it. Those on which something is
answered, such as streams, are left alone: of these each key has its bounds. Where somebody has asked by a key that lets him in, the
connection goes for others of that kind alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from starlette.types import Scope

from ioa.networks import network_of
from ioa_gateway.rounds import Lane, Rounds

HEAD_SECONDS = 10.0
"""In which the head of a request has to be whole, or what was answered has to be read further."""
MOST_IDLE = 500
"""How many connections of all addresses together may ask for nothing; and as many of those on which a key was shown."""
MOST_UNREAD = 64 * 2**20
"""How many bytes of answers may lie unread on these; and as many on those on which a key was shown."""


class _Idle(NamedTuple):
    timer: asyncio.TimerHandle
    unread: int


class Arrivals:
    """The connections of one server.

    Args:
        head_seconds: How long each may ask for nothing.
        most_idle: How many may at a time.
        most_of_address: How many connections one address may have; 0 is any number.
        user_of: Tells whose key a request shows, if it is one that lets in.
        most_unread: How many bytes of answers may lie unread on those that ask for nothing.
    """

    def __init__(
        self,
        head_seconds: float = HEAD_SECONDS,
        most_idle: int = MOST_IDLE,
        most_of_address: int = 0,
        user_of: Callable[[Scope], str | None] = lambda _scope: None,
        most_unread: int = MOST_UNREAD,
    ) -> None:
        self._head_seconds = head_seconds
        self._most_idle = most_idle
        self._most_of_address = most_of_address
        self._user_of = user_of
        self._most_unread = most_unread
        self._rounds = Rounds()
        self._idle = {is_known: dict[asyncio.Transport, _Idle]() for is_known in (True, False)}
        """The oldest first."""
        self._unread: Counter[bool] = Counter()
        self._open: dict[asyncio.Transport, str] = {}
        self._known = set[asyncio.Transport]()
        self._waiting = dict[asyncio.Transport, asyncio.Future[bool]]()
        self._addresses: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._open)

    def come(self, transport: asyncio.Transport) -> bool:
        """Note a connection; False if its address, or, of IPv6, its network has as many as it may."""
        peer = transport.get_extra_info("peername")
        address = self._open[transport] = network_of(str(peer[0])) if peer else ""
        self._addresses[address] += 1
        self.rest(transport)
        return not 0 < self._most_of_address < self._addresses[address]

    def rest(self, transport: asyncio.Transport) -> None:
        """Note that a connection asks for nothing, or keeps from going on what it has asked for."""
        if transport not in self._open:
            return
        self._wait(transport)
        is_known = transport in self._known
        idle = self._idle[is_known]
        if len(idle) > self._most_idle:
            self._close(next(iter(idle)))
        while self._unread[is_known] > self._most_unread:
            self._close(max(idle, key=lambda one: idle[one].unread))

    async def begin(self, transport: asyncio.Transport, scope: Scope) -> bool:
        """Wait until a request may be begun, and note that something is asked; False if the connection is closed before."""
        if transport not in self._open:
            return False
        user = self._user_of(scope)
        lane = Lane(is_known=False, name=self._open[transport]) if user is None else Lane(is_known=True, name=user)
        begun = self._waiting[transport] = self._rounds.wait(lane)
        if not await begun or transport not in self._open:
            return False
        del self._waiting[transport]
        self.stir(transport)
        if lane.is_known:
            self._known.add(transport)
        return True

    def stir(self, transport: asyncio.Transport) -> None:
        """Note that what a connection asked for goes on."""
        is_known = transport in self._known
        idle = self._idle[is_known].pop(transport, None)
        if idle is not None:
            idle.timer.cancel()
            self._unread[is_known] -= idle.unread

    def go(self, transport: asyncio.Transport) -> None:
        """Note that a connection is closed."""
        self.stir(transport)
        self._known.discard(transport)
        waits = self._waiting.pop(transport, None)
        if waits is not None and not waits.done():
            waits.set_result(False)
        address = self._open.pop(transport)
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def _wait(self, transport: asyncio.Transport) -> None:
        self.stir(transport)
        is_known, unread = transport in self._known, transport.get_write_buffer_size()
        timer = asyncio.get_running_loop().call_later(self._head_seconds, self._end, transport, unread)
        self._idle[is_known][transport] = _Idle(timer, unread)
        self._unread[is_known] += unread

    def _end(self, transport: asyncio.Transport, unread: int) -> None:
        """Close a connection, unless it still reads what was answered. What nobody reads would keep it open for ever."""
        if transport.get_write_buffer_size() < unread:
            self._wait(transport)
        else:
            self._close(transport)

    def _close(self, transport: asyncio.Transport) -> None:
        self.stir(transport)
        transport.abort()
