"""Telling messages apart: as nats-server writes them, whatever strangers wrote within, and however they were cut into packets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.transport import TcpTransport
from nats.errors import ProtocolError

from ioa.adapters.nats.receiving import MessageParser, StraightReader
from ioa.adapters.nats.sinks import MessageSink

_SEPARATE = b" \t\r\n"
"""What nats-server takes for what separates the parts of a line; all else it hands on within a subject."""
_SINK, _QUEUE, _NOBODY = 7, 8, 9
Received = tuple[int, bytes, bytes, bytes | None, bytes]


@dataclass
class _Client:
    """As much of nats-py's client as reading takes, which notes what it is given."""

    received: list[Received] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    stats: dict[str, int] = field(default_factory=lambda: {"in_msgs": 0, "in_bytes": 0})
    most: int = 0

    def __post_init__(self) -> None:
        sink = MessageSink(self.received.append)  # type: ignore[arg-type]
        self._ps = MessageParser(self)
        self._subs = {
            _SINK: SimpleNamespace(_future=sink, _max_msgs=self.most, _received=0),
            _QUEUE: SimpleNamespace(_future=None, _max_msgs=0, _received=0),
        }

    def _build_message(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None) -> Received:
        return sid, subject, reply, _block(headers), data

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self.received.append((sid, subject, reply, headers, data))

    async def _process_ping(self) -> None:
        self.others.append("PING")

    async def _process_pong(self) -> None:
        self.others.append("PONG")

    async def _process_err(self, error: str) -> None:
        self.others.append(error)

    async def _process_info(self, info: dict[str, Any]) -> None:
        self.others.append(str(info))


def _block(headers: dict[str, str] | None) -> bytes | None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return f"NATS/1.0\r\n{lines}\r\n".encode() if headers else None


def _written(message: Received) -> bytes:
    """Write a message as nats-server does."""
    sid, subject, reply, block, data = message
    to = b"%b %d %b" % (subject, sid, reply + b" " if reply else b"")
    if block is None:
        return b"MSG %b%d\r\n%b\r\n" % (to, len(data), data)
    return b"HMSG %b%d %d\r\n%b%b\r\n" % (to, len(block), len(block) + len(data), block, data)


_parts = st.binary(min_size=1, max_size=8).map(lambda part: part.translate(None, _SEPARATE) or b"x")
_messages = st.tuples(
    st.sampled_from([_SINK, _QUEUE, _NOBODY]),
    st.lists(_parts, min_size=1, max_size=3).map(b".".join),
    st.just(b"") | _parts,
    st.none() | st.just(_block({"A": "b"})),
    st.binary(max_size=40) | st.sampled_from([b"\r\n", b"MSG a 7 2\r\nhi\r\n", b"PING\r\n"]),
)
_LINES = {
    b"PING\r\n": "PING",
    b"PONG\r\n": "PONG",
    b"-ERR 'no \x0b'\r\n": "'no \x0b'",
    b"+OK\r\n": None,
    b'INFO {"a":1}\r\n': "{'a': 1}",
}


@given(
    said=st.lists(_messages | st.sampled_from(list(_LINES)), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    straight=st.booleans(),
)
def test_what_the_server_writes_is_read_as_it_was_written(said: list[Received | bytes], cuts: list[int], straight: bool) -> None:
    """Each message comes once, whole, in order, to its own subscription, whatever bytes are in it and wherever a packet ends."""
    stream = b"".join(one if isinstance(one, bytes) else _written(one) for one in said)
    ends = sorted(min(cut, len(stream)) for cut in cuts)
    packets = [stream[begin:end] for begin, end in zip([0, *ends], [*ends, len(stream)], strict=True)]
    client = asyncio.run(_read_straight(packets) if straight else _parse(packets))
    assert client.received == [one for one in said if not isinstance(one, bytes)]
    assert client.others == [told for one in said if isinstance(one, bytes) and (told := _LINES[one])]


async def _parse(packets: list[bytes]) -> _Client:
    client = _Client()
    for packet in packets:
        await client._ps.parse(packet)
    return client


def _open(client: _Client) -> tuple[TcpTransport, asyncio.StreamReader]:
    """Have a client read straight from what is received."""
    transport = TcpTransport()  # type: ignore[no-untyped-call]
    reader = transport._io_reader = asyncio.StreamReader()
    StraightReader(client, transport, lambda: None)  # type: ignore[arg-type]
    return transport, reader


async def _read_straight(packets: list[bytes]) -> _Client:
    """Receive packets as a connection does, with nats-py's loop that reads beside it."""
    client = _Client()
    transport, reader = _open(client)

    async def read() -> None:
        while data := await transport.read(32):
            await client._ps.parse(data)

    reading = asyncio.create_task(read())
    for number, packet in enumerate(packets):
        if number % 3:
            await asyncio.sleep(0)
        if packet:
            reader.feed_data(packet)
    reader.feed_eof()
    await reading
    return client


async def test_what_comes_for_a_sink_needs_no_task() -> None:
    """It is handed on before the packet's receipt has ended; what comes behind a message for somebody else comes after that one."""
    transport, reader = _open(client := _Client())
    reading = asyncio.create_task(transport.read(1_000))
    await asyncio.sleep(0)
    first, second, third = ((sid, b"a", b"", None, b"x") for sid in (_SINK, _QUEUE, _SINK))
    reader.feed_data(_written(first) + _written(second) + _written(third))
    assert client.received == [first]
    await client._ps.parse(await reading)
    assert client.received == [first, second, third]


async def test_a_sink_that_wanted_so_many_gets_no_more() -> None:
    """What the server had sent before it was told so is dropped, as nats-py does."""
    transport, reader = _open(client := _Client(most=2))
    reading = asyncio.create_task(transport.read(1_000))
    await asyncio.sleep(0)
    reader.feed_data(_written((_SINK, b"a", b"", None, b"x")) * 2)
    assert (len(client.received), _SINK in client._subs, client.stats) == (2, False, {"in_msgs": 2, "in_bytes": 2})
    reading.cancel()


@pytest.mark.parametrize(
    "line",
    [b"MSG a 1\r\n", b"MSG a b 1\r\n", b"MSG a 1 r s 1\r\n", b"HMSG a 1 2\r\n", b"MSG a 1 -\r\n", b"WHAT\r\n", b"x" * 1_000_001],
)
async def test_what_no_server_writes_is_refused(line: bytes) -> None:
    """The connection is given up, as nats-py does; a line that never ends takes no memory without end."""
    with pytest.raises(ProtocolError):
        await MessageParser(_Client()).parse(line)
