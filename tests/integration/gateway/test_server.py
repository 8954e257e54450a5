"""HTTP connections: timeouts of idle clients, and requests whose end is ambiguous."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import timedelta

import httpx
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ioa.concurrency import beside
from ioa.telemetry.health import open_socket
from ioa_gateway.server import open_server
from tests.integration.gateway.serving import BEARER
from tests.rig.deadline import eventually

LONG = b"x" * 50_000_000
HEAD = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def _served(continues: asyncio.Event | None = None, log: list[str] | None = None) -> AsyncIterator[int]:
    """Serve `/` at once, `/long` with a large response, `/endless` with an endless stream, and `/read` after the whole body.

    Other paths are a stream of two parts; the second is sent after the event `continues`. The log lists started and ended requests.
    """
    noted = [] if log is None else log

    async def parts() -> AsyncIterator[bytes]:
        yield b"first"
        await (continues or asyncio.Event()).wait()
        yield b"last"

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000
            await asyncio.sleep(0)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = request.url.path
        noted.append(f"{path} started")
        try:
            if path == "/read":
                await request.body()
            streams = {"/endless": endless}.get(path, parts)
            whole = Response(LONG if path == "/long" else b"x")
            await (whole if path in ("/", "/long", "/read") else StreamingResponse(streams()))(scope, receive, send)
        except ClientDisconnect:
            pass
        finally:
            noted.append(f"{path} ended")

    with open_socket("127.0.0.1", 0, "IOA_HTTP_PORT") as listening:
        async with open_server(answer, listening):
            yield listening.getsockname()[1]


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Return a function that opens connections, which are closed after the test."""
    writers = list[asyncio.StreamWriter]()

    async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return reader, writer

    yield opened
    for writer in writers:
        writer.close()


@pytest.fixture
def head_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the timeout of request heads."""
    monkeypatch.setattr("ioa_gateway.server._HEAD_SECONDS", 1.0)


@pytest.mark.usefixtures("head_seconds")
async def test_connection_without_request_is_closed(dial: Dial, caplog: pytest.LogCaptureFixture) -> None:
    """The client is silent, its head never ends, it sends no further request, or it does not read the response."""
    async with asyncio.timeout(60), _served() as port:
        silent, _ = await dial(port)
        dripping, drips = await dial(port)
        again, asks = await dial(port)
        unread = socket.create_connection(("127.0.0.1", port))
        unread.sendall(HEAD % b"long")
        asks.write(HEAD % b"")
        assert (await again.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")

        async def drip() -> None:
            for byte in b"GET / HTTP/1.1 X: " + b"x" * 1_000:
                for writer in (drips, asks):
                    writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        async with beside(drip()):
            assert [await _is_closed(one) for one in (silent, dripping, again)] == [True] * 3
        with unread:
            unread.setblocking(False)
            received = list[bytes]()

            def receive() -> bool:
                """Return whether the connection is reset before the whole response has arrived."""
                try:
                    received.append(unread.recv(2**16))
                except BlockingIOError:
                    return False
                except ConnectionError:
                    return True
                return received[-1] == b""

            await asyncio.sleep(2)
            await eventually(receive, lambda is_over: is_over)
            assert sum(map(len, received)) < len(LONG)
    assert caplog.messages == []


@pytest.mark.usefixtures("head_seconds")
async def test_stream_without_events_stays_open(dial: Dial) -> None:
    """The timeout of request heads does not apply while a response is being sent."""
    continues = asyncio.Event()
    async with asyncio.timeout(60), _served(continues) as port:
        reader, writer = await dial(port)
        writer.write(HEAD % b"stream")
        await reader.readuntil(b"first")
        idle, _ = await dial(port)
        assert await _is_closed(idle)
        continues.set()
        assert b"last" in await reader.readuntil(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "fields",
    [
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d",
        b"Connection: x, upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked",
    ],
)
async def test_body_is_never_parsed_as_request(dial: Dial, fields: bytes) -> None:
    """A request with Upgrade and a body is one request; an unknown transfer encoding is rejected."""
    log, smuggled = list[str](), HEAD % b"read"
    async with asyncio.timeout(20), _served(log=log) as port:
        reader, writer = await dial(port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + (fields % len(smuggled) if b"%d" in fields else fields) + b"\r\n\r\n")
        assert (await reader.readline()).startswith((b"HTTP/1.1 200", b"HTTP/1.1 501", b"HTTP/1.1 400"))
        writer.write(smuggled)
        with suppress(OSError):
            writer.write_eof()
        await _is_closed(reader)
    assert log == ["/ started", "/ ended"] if b"Upgrade" in fields else log == []


async def test_length_with_transfer_encoding_is_rejected_with_400(http: httpx.AsyncClient, dial: Dial) -> None:
    """A proxy in front could read another length than the gateway."""
    fields = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    assert await _status(http, dial, "POST /v1/goals", fields, b"0\r\n\r\n") == b"400"


async def _status(http: httpx.AsyncClient, dial: Dial, line: str, fields: str = "", body: bytes = b"") -> bytes:
    """Send a request to the gateway, and return the status of its response."""
    port = http.base_url.port
    assert port is not None
    reader, writer = await dial(port)
    writer.write(f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n".encode() + body)
    async with asyncio.timeout(20):
        return (await reader.readline()).split()[1]


async def test_unfinished_requests_are_closed_at_shutdown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A body that does not arrive and a response that is not read do not delay the shutdown."""
    monkeypatch.setattr("ioa_gateway.server._GRACE_SECONDS", 0.2)
    log = list[str]()
    with ExitStack() as held:
        async with asyncio.timeout(60), _served(log=log) as port:
            for request in (b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx", HEAD % b"endless"):
                held.enter_context(socket.create_connection(("127.0.0.1", port))).sendall(request)
            await eventually(lambda: log, lambda noted: len(noted) == 2)
    assert sorted(log[2:]) == ["/endless ended", "/read ended"]
    assert caplog.messages == []


async def test_slow_body_is_rejected_with_408(http: httpx.AsyncClient, dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body with short pauses between single bytes reaches the timeout too."""
    monkeypatch.setattr("ioa_gateway.request_body.SILENCE", timedelta(seconds=0.5))
    port = http.base_url.port
    assert port is not None
    reader, writer = await dial(port)
    head = f"POST /v1/goals HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {BEARER['Authorization']}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n".encode())

    async def drip() -> None:
        for _ in range(900):
            writer.write(b" ")
            await asyncio.sleep(0.1)

    async with asyncio.timeout(20), beside(drip()):
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
