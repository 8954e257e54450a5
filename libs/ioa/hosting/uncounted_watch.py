"""Looks each second at what a nats-server's connections have sent of which the server counts nothing, and tells it.

For the gate, which runs beside the server. Where it does not share the server's network its kernel shows it other connections, or
none, and some kernels tell nobody: that is said once, and all else goes on without it.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import structlog

from ioa.errors import UnavailableError
from ioa.hosting.uncounted import UncountedBytes
from ioa.ports.sockets import CountingServer, SocketRead, Sockets

_EVERY_SECONDS = 1.0
_MISSED = 3
"""After how many looks in a row that did not show this process's own connection it is said: the kernel may leave one out."""
_HINT = (
    "Run the gate in the network namespace of its nats-server, on Linux: as a container of its pod, or with its network. Until then"
    " who sends what nats-server does not count is named after a minute, or, of messages that it passes over, not at all."
)

_log = structlog.get_logger(__name__)


class UncountedWatch:
    """Watches the server that this process is connected to now; each start of one anew."""

    def __init__(self, sockets: Sockets, server: CountingServer) -> None:
        self._sockets = sockets
        self._server = server
        self._judged: tuple[str, UncountedBytes] | None = None
        self._missed = 0
        self._sees: bool | None = None

    async def follow(self) -> None:
        """Look, for ever."""
        while True:
            await self.look()
            await asyncio.sleep(_EVERY_SECONDS)

    async def look(self) -> None:
        """Look once, and tell what was seen; nothing while the server is away, or does not answer."""
        server = self._server.id
        if server is None:
            return
        before = await self._read()
        if before is None:
            return
        if self._judged is None or self._judged[0] != server:
            self._judged = server, UncountedBytes(self._server.largest_message)
        judge = self._judged[1]
        judge.looked(before)
        found = Counter[int]()
        try:
            if gone := judge.gone():
                found.update(judge.ended(await self._server.counted_to_the_end(gone)))
            if suspects := judge.suspects():
                counted = await self._server.counted(suspects)
                found.update(judge.judged(counted, await self._sockets.read_at(self._server.port)))
        except UnavailableError as error:
            _log.info("connections_not_counted", why=error.message)
        if found and self._server.id == server:
            await self._server.tell_uncounted(found)

    async def _read(self) -> list[SocketRead] | None:
        """Return the server's connections, if this process's own is among them."""
        why, own = "The kernel shows this process other connections than those of nats-server.", self._server.own
        try:
            read = list(await self._sockets.read_at(self._server.port))
        except UnavailableError as error:
            read, why = [], error.message
        if own is None or own != self._server.own:
            return None
        if any(one.peer == own for one in read):
            self._missed = 0
            if not self._sees:
                self._sees = True
                _log.info("uncounted_watched")
            return read
        self._missed += 1
        if self._missed >= _MISSED and self._sees is not False:
            self._sees = False
            _log.warning("uncounted_not_watched", why=why, hint=_HINT)
        return None
