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

from ioa.beside import beside
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
    allow_reuse_address = True
    daemon_threads = True
    timeout = 0  # the event loop calls `handle_request` when a connection waits

    def handle_error(self, *_: object) -> None:
        """Drop a connection that is closed or late."""


class _Ipv6Server(_Server):
    """A server for both families of addresses."""

    address_family = socket.AF_INET6


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

    with _listen(port, address, Handler) as server:
        loop.add_reader(server, server.handle_request)
        port = server.socket.getsockname()[1]
        _log.info("health_served", port=port)
        try:
            async with beside(process_metrics.watch_event_loop()):
                yield port
        finally:
            loop.remove_reader(server)


def _listen(port: int, address: str, handler: type[BaseHTTPRequestHandler]) -> _Server:
    try:
        if address != EVERY_ADDRESS:
            return _Server((address, port), handler)
        try:
            return _Ipv6Server(("::", port), handler)
        except OSError:  # this machine has no IPv6
            return _Server(("", port), handler)
    except OSError as error:
        raise InvalidInputError(
            f"Port {port} is not available for metrics and probes ({error.strerror}).", hint="Choose another port, or 0 for any."
        ) from None


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
