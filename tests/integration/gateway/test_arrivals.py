"""Connections: who asks for nothing, or never finishes asking, takes no room from others, with or without a key."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from datetime import timedelta

import httpx
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ioa.beside import beside
from ioa_gateway.arrivals import Arrivals
from ioa_gateway.connection import FEW_BYTES, MOST_SMALL_CHUNKS
from ioa_gateway.server import bound, open_server
from tests.integration.gateway.serving import BEARER
from tests.rig.deadline import eventually

LONG = b"x" * 50_000_000
HEAD = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST /%s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def _served(arrivals: Arrivals, goes_on: asyncio.Event, log: list[str] | None = None) -> AsyncIterator[int]:
    """Serve what answers `/` at once, `/long` by much, `/endless` by a stream without end, and `/read` when its body is whole.

    Anything else is a stream of two parts, the last when it may. The log is of what was begun, and what has ended.
    """
    told = [] if log is None else log

    async def parts() -> AsyncIterator[bytes]:
        yield b"first"
        await goes_on.wait()
        yield b"last"

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000
            await asyncio.sleep(0)  # as whoever waits for NATS lets others go on

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = request.url.path
        told.append(f"{path} begun")
        try:
            if path == "/read":
                await request.body()
            streams = {"/endless": endless}.get(path, parts)
            whole = Response(LONG if path == "/long" else b"x")
            await (whole if path in ("/", "/long", "/read") else StreamingResponse(streams()))(scope, receive, send)
        except ClientDisconnect:
            pass
        finally:
            told.append(f"{path} ended")

    with bound("127.0.0.1", 0) as listening:
        async with open_server(answer, listening, arrivals):
            yield listening.getsockname()[1]


async def _is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Open connections, which are closed in the end."""
    writers = list[asyncio.StreamWriter]()

    async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return reader, writer

    yield opened
    for writer in writers:
        writer.close()


async def test_a_connection_that_asks_for_nothing_is_closed(dial: Dial) -> None:
    """Silent, with a head that never ends, behind an answer, or with an answer that nobody reads: each is closed by itself."""
    arrivals = Arrivals(head_seconds=2)
    async with asyncio.timeout(60), _served(arrivals, asyncio.Event()) as port:
        silent, _ = await dial(port)
        dripping, drips = await dial(port)
        again, asks = await dial(port)
        deaf = socket.create_connection(("127.0.0.1", port))
        deaf.sendall(HEAD % b"long")
        asks.write(HEAD % b"")
        assert (await again.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")

        async def drip() -> None:
            for byte in b"GET / HTTP/1.1 X: " + b"x" * 1_000:
                for writer in (drips, asks):
                    writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        async with beside(drip()):
            assert [await _is_closed(one) for one in (silent, dripping, again)] == [True] * 3
        await eventually(lambda: len(arrivals), lambda left: left == 0)
        deaf.close()


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is parsed of bodies, a piece for each chunk."""
    parsed, on_body = list[bytes](), HttpToolsProtocol.on_body

    def noted(protocol: HttpToolsProtocol, body: bytes) -> None:
        parsed.append(body)
        on_body(protocol, body)

    monkeypatch.setattr(HttpToolsProtocol, "on_body", noted)
    return parsed


def _chunks(count: int, size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b"x" * size) * count


async def test_a_body_in_very_small_chunks_is_refused(dial: Dial, pieces: list[bytes]) -> None:
    """Each costs as much as one of many bytes, before anybody knows who sends it; as many of these are read."""
    async with asyncio.timeout(60), _served(Arrivals(), asyncio.Event()) as port:
        reader, writer = await dial(port)
        writer.write(CHUNKED % b"read" + _chunks(5 * MOST_SMALL_CHUNKS, 1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        assert len(pieces) == MOST_SMALL_CHUNKS
        reader, writer = await dial(port)
        writer.write(CHUNKED % b"read" + _chunks(2 * MOST_SMALL_CHUNKS, FEW_BYTES) + b"0\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")


async def test_a_stream_stays_open(dial: Dial) -> None:
    """Who follows something hears its end, however long nothing was said, and however many others come for nothing."""
    goes_on = asyncio.Event()
    async with asyncio.timeout(60), _served(Arrivals(head_seconds=2, most_idle=2), goes_on) as port:
        reader, writer = await dial(port)
        writer.write(HEAD % b"stream")
        await reader.readuntil(b"first")
        others = [await dial(port) for _ in range(5)]
        assert [await _is_closed(one) for one, _ in others] == [True] * 5
        goes_on.set()
        assert b"last" in await reader.readuntil(b"0\r\n\r\n")


@pytest.mark.parametrize("without_end", [b"a:b\r\n" * 1_000, b"a:" + b"b" * 100_000])
async def test_a_head_is_bounded(dial: Dial, without_end: bytes) -> None:
    """Fields without number or end are refused before they are kept, behind a body as well as before it."""
    async with asyncio.timeout(20), _served(Arrivals(head_seconds=60), asyncio.Event()) as port:
        reader, writer = await dial(port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + without_end)
        assert (await reader.readline()).startswith(b"HTTP/1.1 431")
        behind, trails = await dial(port)
        trails.write(b"POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        await behind.readuntil(b"first\r\n")
        trails.write(b"1\r\nx\r\n0\r\n" + without_end)
        assert await _is_closed(behind)


async def test_a_target_is_bounded(dial: Dial) -> None:
    """Its parts are read before anybody knows who asks: 12,000 of a query take longer than a hundred requests."""
    async with asyncio.timeout(20), _served(Arrivals(), asyncio.Event()) as port:
        reader, writer = await dial(port)
        writer.write(b"GET /?" + b"a=b&" * 1_900 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /?" + b"a=b&" * 2_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 414")


async def test_a_head_within_its_bounds_is_read(dial: Dial) -> None:
    """Of as many fields as there may be, with a body that has more bytes than a head may."""
    async with asyncio.timeout(20), _served(Arrivals(), asyncio.Event()) as port:
        reader, writer = await dial(port)
        fields = b"".join(b"x%d: %s\r\n" % (number, b"x" * 500) for number in range(98))
        for _ in range(2):
            writer.write(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n" + fields + b"\r\n" + b"a:b\r\n" * 60_000)
            assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "fields",
    [
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d",
        b"Connection: x, upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked",
    ],
)
async def test_no_body_is_taken_for_a_request(dial: Dial, fields: bytes) -> None:
    """Where the parser would leave the body out, and go on with it as the next request, or hand it on undecoded, it is refused."""
    begun, behind = list[str](), HEAD % b"read"
    async with asyncio.timeout(20), _served(Arrivals(), asyncio.Event(), begun) as port:
        reader, writer = await dial(port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n" + (fields % len(behind) if b"%d" in fields else fields) + b"\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.write(behind)
        assert (await reader.read()).startswith(b"HTTP/1.1 501 Not Implemented\r\n")
        assert begun == []


async def test_a_length_has_as_many_digits_as_a_number_may(dial: Dial) -> None:
    """Zeros before it are read as a number by whatever is behind, which Python refuses for thousands of them."""
    begun = list[str]()
    async with asyncio.timeout(20), _served(Arrivals(), asyncio.Event(), begun) as port:
        reader, writer = await dial(port)
        writer.write(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 00000000000000000002\r\n\r\n{}")
        assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")
        writer.write(b"POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: %s2\r\n\r\n{}" % (b"0" * 4_300))
        assert (await reader.read()).startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json")
    assert "/other begun" not in begun


async def test_nothing_is_said_within_another_answer(dial: Dial) -> None:
    """What cannot be read behind a request that is being answered closes the connection: a refusal would be read as its answer."""
    async with asyncio.timeout(20), _served(Arrivals(), asyncio.Event()) as port:
        reader, writer = await dial(port)
        writer.write(HEAD % b"stream")
        await reader.readuntil(b"first\r\n")
        writer.write(b"\0\r\n\r\n")
        assert await _is_closed(reader)


async def test_who_goes_while_he_waits_is_no_failure(
    dial: Dial, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection is closed before its request was begun, with one more behind it: the log tells of no bug."""
    monkeypatch.setattr("ioa_gateway.rounds.AT_ONCE", 0)
    arrivals, log = Arrivals(head_seconds=0.5), list[str]()
    async with asyncio.timeout(60), _served(arrivals, asyncio.Event(), log) as port:
        reader, writer = await dial(port)
        writer.write((HEAD % b"") * 2)
        assert await _is_closed(reader)
    assert (log, caplog.messages) == ([], [])


async def test_a_stream_ends_with_its_connection(dial: Dial) -> None:
    """Also if another request waits behind it, whose end was the only one that was told."""
    log = list[str]()
    async with asyncio.timeout(60), _served(Arrivals(head_seconds=1), asyncio.Event(), log) as port:
        for behind in (b"", HEAD % b"", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + b"x" * 150_000):
            log.clear()
            reader, writer = await dial(port)
            writer.write(HEAD % b"stream")
            await reader.readuntil(b"first")
            writer.write(behind)
            await writer.drain()
            writer.close()
            await eventually(lambda: log, lambda told: told == ["/stream begun", "/stream ended"])


async def test_who_ends_no_request_is_cut_off_at_the_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A body that does not come, and an answer that is not read, are closed by the server when it ends: the log tells of no bug."""
    monkeypatch.setattr("ioa_gateway.server._GRACE_SECONDS", 0.2)
    log = list[str]()
    with ExitStack() as held:
        async with asyncio.timeout(60), _served(Arrivals(), asyncio.Event(), log) as port:
            for asked in (b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx", HEAD % b"endless"):
                held.enter_context(socket.create_connection(("127.0.0.1", port))).sendall(asked)
            await eventually(lambda: log, lambda told: len(told) == 2)
    assert sorted(log[2:]) == ["/endless ended", "/read ended"]
    assert caplog.messages == []


async def test_a_slow_body_is_given_up(http: httpx.AsyncClient, dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that comes a byte now and then is refused in the end, though it is never silent for long."""
    monkeypatch.setattr("ioa_gateway.calls.BODY_SILENCE", timedelta(seconds=0.5))
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
