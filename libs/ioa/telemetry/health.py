"""Health server: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

A thread handles each request, and the event loop of the process answers it, so that a loop that hangs is not healthy. Liveness
depends on nothing else: a process that waits for NATS must not be restarted. Readiness also depends on `ioa.telemetry.readiness`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer

import structlog
from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ioa.concurrency import beside
from ioa.errors import InvalidInputError
from ioa.telemetry import process_metrics, readiness

_TIMEOUT_SECONDS = 5
"""Timeout for a request, and for its answer."""
EVERY_ADDRESS = "*"
_TEXT = "text/plain; charset=utf-8"

_log = structlog.get_logger(__name__)

_Answer = tuple[int, str, bytes]
"""Status, media type and body."""


class _Server(ThreadingTCPServer):
    daemon_threads = True
    timeout = 0  # the event loop calls `handle_request` when a connection waits

    def __init__(self, listening: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listening.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    def handle_error(self, *_: object) -> None:
        """Drop a connection that is closed or late."""


@asynccontextmanager
async def open_health(port: int, is_up: Callable[[], bool], address: str = "127.0.0.1") -> AsyncIterator[int]:
    """Answer GET and HEAD requests, each on its own connection; yield the port.

    Args:
        port: The port to listen on; 0: a free port.
        is_up: Whether the process has started and was not asked to stop.
        address: Where to bind the port; `*` is every address.

    Raises:
        InvalidInputError: The port is not available.
    """
    loop = asyncio.get_running_loop()

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_SECONDS

        def do_GET(self) -> None:
            answer = asyncio.run_coroutine_threadsafe(_answer(self.path.partition("?")[0], is_up), loop)
            status, kind, body = answer.result(_TIMEOUT_SECONDS)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name is the library's

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    listening = open_socket(address, port, "IOA_METRICS_PORT")
    with _Server(listening, Handler) as server:
        loop.add_reader(server, server.handle_request)
        port = listening.getsockname()[1]
        _log.info("health_served", port=port)
        try:
            async with beside(process_metrics.watch_event_loop()):
                yield port
        finally:
            loop.remove_reader(server)


def open_socket(address: str, port: int, setting: str) -> socket.socket:
    """Return a listening socket for HTTP.

    Args:
        address: The address to bind; `*` is every address.
        port: The port; 0: a free port.
        setting: Name of the setting of the port, for the error.

    Raises:
        InvalidInputError: The port is not available.
    """
    is_dual = address == EVERY_ADDRESS and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual or ":" in address else socket.AF_INET
    host = "" if address == EVERY_ADDRESS else address
    try:
        listening = socket.create_server((host, port), family=family, dualstack_ipv6=is_dual)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(
            f"Port {port} of {address} is not available ({why}).", hint=f"Set another port with {setting}."
        ) from None
    # asyncio sets TCP_NODELAY only on sockets with an explicit protocol. Without it, the second packet of a response waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def _answer(path: str, is_up: Callable[[], bool]) -> _Answer:
    missing = readiness.missing() + ([] if is_up() else ["start or stop"])
    match path:
        case "/healthz":
            return 200, _TEXT, b"ok\n"
        case "/readyz" if missing:
            return 503, _TEXT, f"waiting for: {', '.join(missing)}\n".encode()
        case "/readyz":
            return 200, _TEXT, b"ready\n"
        case "/metrics":
            process_metrics.ready.set(not missing)
            return await _metrics()
        case _:
            return 404, _TEXT, b"There are /metrics, /healthz and /readyz.\n"


async def _metrics() -> _Answer:
    try:
        process_metrics.update_gauges()
        return 200, CONTENT_TYPE_LATEST, await asyncio.to_thread(generate_latest, REGISTRY)
    except Exception:  # noqa: BLE001 - a collector may raise anything
        _log.exception("metrics_failed")
        return 500, _TEXT, b"See the log of this process.\n"
