"""The port for those who look after the process: `/metrics` for Prometheus, `/healthz` and `/readyz` for probes.

It is served by the event loop itself, so that a loop that hangs is not called healthy. Liveness asks for nothing else: a process
that waits for NATS must not be restarted for it. Readiness also needs what `ioa.telemetry.readiness` knows of.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import structlog
from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ioa.cancellation import TaskGroup, fail_after
from ioa.errors import InvalidInputError
from ioa.networks import network_of
from ioa.telemetry import process_metrics, readiness

_ASK_WITHIN = timedelta(seconds=5)
_MAX_REQUEST_BYTES = 16_384
_ANY = "0.0.0.0"  # noqa: S104  # whoever scrapes and probes is on another machine
LOOPBACK, EVERY_ADDRESS = "127.0.0.1", "*"
_MAX_CONNECTIONS = 20
TEXT = "text/plain; charset=utf-8"

_log = structlog.get_logger(__name__)

Answer = tuple[str, str, bytes]
"""Status line, media type and body."""

ALIVE: Answer = ("200 OK", TEXT, b"ok\n")
NOT_FOUND: Answer = ("404 Not Found", TEXT, b"There are /metrics, /healthz and /readyz.\n")


Answering = Callable[[str], Awaitable[Answer]]
"""Answers a request by its path."""


class _Caller(NamedTuple):
    writer: asyncio.StreamWriter
    network: str
    address: str


@asynccontextmanager
async def open_health(where: int | Path, is_up: Callable[[], bool], address: str = LOOPBACK) -> AsyncIterator[int]:
    """Answer on a port or on a Unix socket; yield the port, 0 for a socket.

    Args:
        where: The port to listen on, 0 for a free one, or the path of a socket.
        is_up: Whether the process has started and was not told to stop; it is ready if nothing it needs is missing either.
        address: Where to bind the port; `*` is every address.

    Raises:
        InvalidInputError: The port cannot be had.
    """
    addresses: tuple[str | None, ...] = (address,)
    if address == EVERY_ADDRESS:
        addresses = (None, _ANY) if where else (_ANY,)  # of two families each would take a free port of its own
    async with open_http(lambda path: _answer(path, is_up), where, addresses) as port, TaskGroup() as group:
        watch = group.create_task(process_metrics.watch_event_loop())
        if not isinstance(where, Path):
            _log.info("health_served", port=port)
        try:
            yield port
        finally:
            watch.cancel()


@asynccontextmanager
async def open_http(answer: Answering, where: int | Path, addresses: Sequence[str | None]) -> AsyncIterator[int]:
    """Answer GET and HEAD requests, each on a connection of its own; yield the port, 0 for a socket.

    At most 20 connections are open at a time: one more ends the oldest of the address that has most, so that whoever floods ends
    his own. What several ask for at a time is answered once.

    Args:
        answer: What to answer.
        where: The port to listen on, 0 for a free one, or the path of a socket.
        addresses: Where to bind the port, the first that can be had; None is every address of both families.

    Raises:
        InvalidInputError: The port cannot be had.
    """
    talks: dict[asyncio.Task[None], _Caller] = {}
    answers: dict[str, asyncio.Task[Answer]] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        talks[talk := group.create_task(_talk(reader, writer, answered))] = _Caller(writer, network_of(address), address)
        talk.add_done_callback(lambda ended: talks.pop(ended, None))
        if len(talks) > _MAX_CONNECTIONS:
            end(_most_crowded(talks))

    def end(talk: asyncio.Task[None]) -> None:
        talks.pop(talk).writer.transport.abort()  # also if it has not begun, and so will not do it
        talk.cancel()

    def answered(path: str) -> Awaitable[Answer]:
        if path not in answers:
            answers[path] = group.create_task(_answer_or_log(path, answer))
            answers[path].add_done_callback(lambda _: answers.pop(path))
        return asyncio.shield(answers[path])

    server = await _listen(accept, where, addresses)
    async with TaskGroup() as group:
        await server.start_serving()
        try:
            yield 0 if isinstance(where, Path) else server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for talk in list(talks):
                end(talk)
            for one in answers.values():
                one.cancel()


def _most_crowded(talks: Mapping[asyncio.Task[None], _Caller]) -> asyncio.Task[None]:
    """Find the oldest of the address that has most.

    Of IPv6 it is looked for in the network that has most: whoever has one has any number of addresses, but others may be in it, as
    the kubelet is in that of its node's pods.
    """
    by_network = Counter(caller.network for caller in talks.values())
    by_address = Counter(caller.address for caller in talks.values())
    return max(talks, key=lambda talk: (by_network[talks[talk].network], by_address[talks[talk].address]))


async def _listen(
    accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], where: int | Path, addresses: Sequence[str | None]
) -> asyncio.Server:
    if isinstance(where, Path):
        return await asyncio.start_unix_server(accept, where, limit=_MAX_REQUEST_BYTES, start_serving=False)
    refusal: OSError | None = None
    for address in addresses:
        try:
            return await asyncio.start_server(accept, address, where, limit=_MAX_REQUEST_BYTES, start_serving=False)
        except OSError as error:
            refusal = error
    assert refusal is not None
    raise InvalidInputError(
        f"Port {where} cannot be had for metrics and probes ({refusal.strerror}).", hint="Name a free one, or 0 for any."
    )


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answering) -> None:
    """Answer one request and close; what is not read by then is not sent."""
    writer.transport.set_write_buffer_limits(0)  # to drain is to have all sent: a close would wait for its reader for ever
    with contextlib.suppress(TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        try:
            async with fail_after(_ASK_WITHIN.total_seconds()):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                status, kind, body = await _answer_to(method, path.partition("?")[0], answer)
                lines = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close", "", "")
                writer.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" else body))
                await writer.drain()
        finally:
            writer.transport.abort()


async def _answer_to(method: str, path: str, answer: Answering) -> Answer:
    if method not in ("GET", "HEAD"):
        return "405 Method Not Allowed", TEXT, b"GET and HEAD are served.\n"
    return await answer(path)


async def _answer_or_log(path: str, answer: Answering) -> Answer:
    try:
        return await answer(path)
    except Exception:  # noqa: BLE001 - whoever asks gets an answer, the log the bug
        _log.exception("request_failed", path=path)
        return "500 Internal Server Error", TEXT, b"The log of this process says what went wrong.\n"


async def _answer(path: str, is_up: Callable[[], bool]) -> Answer:
    match path:
        case "/healthz":
            return ALIVE
        case "/readyz":
            return readiness_answer(_missing(is_up))
        case "/metrics":
            process_metrics.ready.set(not _missing(is_up))
            process_metrics.update_gauges()
            return "200 OK", CONTENT_TYPE_LATEST, await asyncio.to_thread(generate_latest, REGISTRY)
        case _:
            return NOT_FOUND


def readiness_answer(missing: Sequence[str]) -> Answer:
    """Return what to say of what is waited for."""
    if missing:
        return "503 Service Unavailable", TEXT, f"waiting for: {', '.join(missing)}\n".encode()
    return "200 OK", TEXT, b"ready\n"


def _missing(is_up: Callable[[], bool]) -> list[str]:
    return readiness.missing() + ([] if is_up() else ["start or stop"])
