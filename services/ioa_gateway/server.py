"""uvicorn server without signal handlers and logs of its own. Idle connections are closed after a timeout."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from ioa.concurrency import beside

_MAX_CONNECTIONS = 2_000
"""Open connections above which uvicorn answers requests with 503."""
_HEAD_SECONDS = 10.0
"""Timeout of a request head, in seconds, from the connection's start or the end of the previous response."""
_GRACE_SECONDS, _CANCEL_SECONDS = 4, 5
"""Seconds after the shutdown begins until open connections are closed, and until uvicorn cancels the rest with a traceback."""


class _Connection(H11Protocol):
    """An HTTP/1.1 connection that is closed if the next request head does not arrive before the timeout."""

    _timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._timer.cancel()
        super().on_response_complete()  # starts the next cycle if its request is buffered
        self._start_timer()

    def send_400_response(self, msg: str) -> None:
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # a response is being sent or was sent
            self.transport.abort()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(_HEAD_SECONDS, self._end_wait, self.transport.get_write_buffer_size())

    def _end_wait(self, unsent: int) -> None:
        """Close the connection unless a request is running, or the client still reads the previous response."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            return
        if self.transport.get_write_buffer_size() < unsent:
            self._start_timer()
        else:
            self.transport.abort()


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections whose request cannot end: the body does not arrive or the response is not read."""
        closing = asyncio.get_running_loop().call_later(_GRACE_SECONDS, self._close)
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()

    def _close(self) -> None:
        for connection in self.server_state.connections:
            connection.transport.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not handle signals; the process does."""
        yield


@asynccontextmanager
async def open_server(app: ASGIApp, listening: socket.socket) -> AsyncIterator[None]:
    """Serve requests while the block runs, then finish running requests within `_GRACE_SECONDS`."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_CANCEL_SECONDS,
    )
    config.load()
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True

    async with beside(server.serve(sockets=[listening]), stop=stop):
        yield
