"""The port for those who look after the process: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

It is served by the event loop itself, so that a loop that hangs is not called healthy. Liveness asks for nothing else: a process
that waits for NATS must not be restarted for it. Readiness also needs what `ioa.readiness` knows of.
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

from ioa import readiness
from ioa.errors import InvalidInputError
from ioa.runtime import process_metrics

_ASK_WITHIN = timedelta(seconds=5)
_MAX_REQUEST_BYTES = 16_384
_ANY = "0.0.0.0"  # noqa: S104  # whoever scrapes and probes is on another machine
_TEXT = "text/plain; charset=utf-8"

_log = structlog.get_logger(__name__)

Answer = tuple[str, str, bytes]
"""Status line, media type and body."""


@asynccontextmanager
async def open_health(port: int, is_up: Callable[[], bool]) -> AsyncIterator[int]:
    """Answer on `port`, on every address, and yield the port; 0 takes a free one.

    Args:
        port: Where to listen.
        is_up: Whether the process has started and was not told to stop; it is ready if nothing it needs is missing either.

    Raises:
        InvalidInputError: The port cannot be had.
    """
    talks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(talk := group.create_task(_talk(reader, writer, is_up)))
        talk.add_done_callback(talks.discard)

    server = await _listen(port, accept)
    async with asyncio.TaskGroup() as group:
        watch = group.create_task(process_metrics.watch_event_loop())
        await server.start_serving()
        chosen: int = server.sockets[0].getsockname()[1]
        _log.info("health_served", port=chosen)
        try:
            yield chosen
        finally:
            server.close()
            for task in (watch, *talks):
                task.cancel()


async def _listen(port: int, accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]) -> asyncio.Server:
    """Bind to all addresses of both families, or of IPv4 where there is no other."""
    refusal: OSError | None = None
    for address in (None, _ANY) if port else (_ANY,):
        try:
            return await asyncio.start_server(accept, address, port, limit=_MAX_REQUEST_BYTES, start_serving=False)
        except OSError as error:
            refusal = error
    assert refusal is not None
    raise InvalidInputError(
        f"Port {port} cannot be had for metrics and probes ({refusal.strerror}).", hint="Set IOA_METRICS_PORT to a free one."
    )


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_up: Callable[[], bool]) -> None:
    """Answer one request and close."""
    with contextlib.suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        try:
            async with asyncio.timeout(_ASK_WITHIN.total_seconds()):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                status, kind, body = await _answer(method, path.partition("?")[0], is_up)
                lines = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close", "", "")
                writer.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        finally:
            writer.close()


async def _answer(method: str, path: str, is_up: Callable[[], bool]) -> Answer:
    if method not in ("GET", "HEAD"):
        return "405 Method Not Allowed", _TEXT, b"GET and HEAD are served.\n"
    match path:
        case "/healthz":
            return "200 OK", _TEXT, b"ok\n"
        case "/readyz":
            missing = _missing(is_up)
            if missing:
                return "503 Service Unavailable", _TEXT, f"waiting for: {', '.join(missing)}\n".encode()
            return "200 OK", _TEXT, b"ready\n"
        case "/metrics":
            process_metrics.ready.set(not _missing(is_up))
            process_metrics.update_gauges()
            return "200 OK", CONTENT_TYPE_LATEST, await asyncio.to_thread(generate_latest, REGISTRY)
        case _:
            return "404 Not Found", _TEXT, b"There are /metrics, /healthz and /readyz.\n"


def _missing(is_up: Callable[[], bool]) -> list[str]:
    return readiness.missing() + ([] if is_up() else ["start or stop"])
