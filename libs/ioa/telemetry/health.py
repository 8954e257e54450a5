"""Health server: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

The event loop of the process serves it, so that a loop that hangs is not healthy. Liveness depends on nothing else: a process that
waits for NATS must not be restarted. Readiness also depends on `ioa.telemetry.readiness`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import structlog
from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import InvalidInputError
from ioa.telemetry import process_metrics, readiness

_REQUEST_TIMEOUT = timedelta(seconds=5)
_MAX_REQUEST_BYTES = 16_384
_ANY = "0.0.0.0"  # noqa: S104  # Prometheus and the kubelet are on other machines
EVERY_ADDRESS = "*"
_TEXT = "text/plain; charset=utf-8"

_log = structlog.get_logger(__name__)

_Answer = tuple[str, str, bytes]
"""Status line, media type and body."""
_Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


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
    requests: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.add(request := group.create_task(_serve(reader, writer, is_up)))
        request.add_done_callback(requests.discard)

    server = await _listen(accept, port, address)
    async with TaskGroup() as group:
        watch = group.create_task(process_metrics.watch_event_loop())
        await server.start_serving()
        port = server.sockets[0].getsockname()[1]
        _log.info("health_served", port=port)
        try:
            yield port
        finally:
            server.close()
            for task in (watch, *requests):
                task.cancel()


async def _listen(accept: _Accept, port: int, address: str) -> asyncio.Server:
    addresses: tuple[str | None, ...] = (address,)
    if address == EVERY_ADDRESS:
        addresses = (None, _ANY) if port else (_ANY,)  # with None, each address family would take its own free port
    refusal: OSError | None = None
    for one in addresses:
        try:
            return await asyncio.start_server(accept, one, port, limit=_MAX_REQUEST_BYTES, start_serving=False)
        except OSError as error:
            refusal = error
    assert refusal is not None
    raise InvalidInputError(
        f"Port {port} is not available for metrics and probes ({refusal.strerror}).", hint="Choose another port, or 0 for any."
    )


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_up: Callable[[], bool]) -> None:
    """Answer one request and close the connection."""
    writer.transport.set_write_buffer_limits(0)  # drain waits until all is sent
    with contextlib.suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        try:
            async with fail_after(_REQUEST_TIMEOUT.total_seconds()):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                status, kind, body = await _answer(method, path.partition("?")[0], is_up)
                lines = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close", "", "")
                writer.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        finally:
            writer.transport.abort()


async def _answer(method: str, path: str, is_up: Callable[[], bool]) -> _Answer:
    if method not in ("GET", "HEAD"):
        return "405 Method Not Allowed", _TEXT, b"GET and HEAD are served.\n"
    missing = readiness.missing() + ([] if is_up() else ["start or stop"])
    match path:
        case "/healthz":
            return "200 OK", _TEXT, b"ok\n"
        case "/readyz" if missing:
            return "503 Service Unavailable", _TEXT, f"waiting for: {', '.join(missing)}\n".encode()
        case "/readyz":
            return "200 OK", _TEXT, b"ready\n"
        case "/metrics":
            process_metrics.ready.set(not missing)
            return await _metrics()
        case _:
            return "404 Not Found", _TEXT, b"There are /metrics, /healthz and /readyz.\n"


async def _metrics() -> _Answer:
    try:
        process_metrics.update_gauges()
        return "200 OK", CONTENT_TYPE_LATEST, await asyncio.to_thread(generate_latest, REGISTRY)
    except Exception:  # noqa: BLE001 - a collector may raise anything
        _log.exception("metrics_failed")
        return "500 Internal Server Error", _TEXT, b"See the log of this process.\n"
