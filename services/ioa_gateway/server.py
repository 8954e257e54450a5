"""Serving an application by uvicorn, which neither takes the signals of the process nor logs by itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from ioa.beside import beside
from ioa.errors import InvalidInputError
from ioa.telemetry.health import EVERY_ADDRESS
from ioa_gateway.arrivals import Arrivals
from ioa_gateway.connection import protocol_of

_MOST_AT_ONCE = 2_000
_GRACE_SECONDS, _CANCELLED_SECONDS = 4, 5
"""How long what is being answered at the end may take, and when uvicorn cancels what is left, with a traceback for each."""
_ACCEPTED_AT_ONCE, _QUEUED = 8, 2_048
"""How many connections are taken in a round of the event loop, and how many may wait for that in the kernel: whoever connects again
and again would have everybody else wait for thousands of them."""


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Have more wait than are taken at once: asyncio has one number for both."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_QUEUED)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections that keep their own request from ending, by a body that does not come or an answer that is not read."""
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
        """Leave them to the process."""
        yield


def bound(address: str, port: int) -> socket.socket:
    """Take a port.

    Raises:
        InvalidInputError: It cannot be had.
    """
    try:
        if address == EVERY_ADDRESS:
            listening = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            listening = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(f"Port {port} of {address} cannot be had ({why}).", hint="Name another by IOA_HTTP_PORT.") from None
    # asyncio does so for sockets that name their protocol alone; else the second packet of an answer waits 40 ms for the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


@asynccontextmanager
async def open_server(app: ASGIApp, listening: socket.socket, arrivals: Arrivals | None = None) -> AsyncIterator[None]:
    """Serve for as long as the block; whoever is being answered at its end is answered first, if it does not take long.

    Args:
        app: What answers.
        listening: Where connections come in.
        arrivals: The bounds of connections on which nothing is asked.
    """
    config = uvicorn.Config(
        app,
        http=protocol_of(Arrivals() if arrivals is None else arrivals),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_AT_ONCE,
        backlog=_ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=_CANCELLED_SECONDS,
    )
    config.load()
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True

    async with beside(server.serve(sockets=[listening]), stop=stop):
        yield
