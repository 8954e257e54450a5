"""Parsing messages: as nats-server writes them, with any bytes in subjects, and any cuts between packets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError

from ioa.adapters.nats.wire.message_parser import MessageParser, decode_subject, drop_foreign_status, read_headers

_SEPARATE = b" \t\r\n"
"""What nats-server takes for what separates the parts of a line; all else it hands on within a subject."""
_SINK, _QUEUE, _NOBODY = 7, 8, 9
Received = tuple[int, bytes, bytes, bytes | None, bytes]


@dataclass
class _Client:
    """As much of nats-py's client as reading takes, which notes what it is given."""

    received: list[Received] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ps = MessageParser(self)

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
)
def test_what_the_server_writes_is_read_as_it_was_written(said: list[Received | bytes], cuts: list[int]) -> None:
    """Each message comes once, whole, in order, to its own subscription, whatever bytes are in it and wherever a packet ends."""
    stream = b"".join(one if isinstance(one, bytes) else _written(one) for one in said)
    ends = sorted(min(cut, len(stream)) for cut in cuts)
    packets = [stream[begin:end] for begin, end in zip([0, *ends], [*ends, len(stream)], strict=True)]
    client = asyncio.run(_parse(packets))
    assert client.received == [one for one in said if not isinstance(one, bytes)]
    assert client.others == [told for one in said if isinstance(one, bytes) and (told := _LINES[one])]


async def _parse(packets: list[bytes]) -> _Client:
    client = _Client()
    for packet in packets:
        await client._ps.parse(packet)
    return client


@pytest.mark.parametrize(
    "line",
    [b"MSG a 1\r\n", b"MSG a b 1\r\n", b"MSG a 1 r s 1\r\n", b"HMSG a 1 2\r\n", b"MSG a 1 -\r\n", b"WHAT\r\n", b"x" * 1_000_001],
)
async def test_what_no_server_writes_is_refused(line: bytes) -> None:
    """The connection is given up, as nats-py does; a line that never ends takes no memory without end."""
    with pytest.raises(ProtocolError):
        await MessageParser(_Client()).parse(line)


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        (b"NATS/1.0\r\nA: b\r\nC:d: e \r\n\r\n", {"A": "b", "C": "d: e"}),
        (b"NATS/1.0\r\nNats-Sequence: 5\r\nC: d\r\nNats-Sequence: 7\r\n\r\n", {"Nats-Sequence": "7", "C": "d"}),
        (b"NATS/1.0 503\r\n\r\n", {"Status": "503"}),
        (b"NATS/1.0 404 No Messages\r\nA: b\r\n\r\n", {"Status": "404", "Description": "No Messages", "A": "b"}),
        (b"NATS/1.0\r\nIoa-Reason: na\xc3\xafve\r\n\r\n", {"Ioa-Reason": "naïve"}),
        (b"NATS/1.0 \xff\xff\xff\r\nA: \xff\r\n\r\n", {"A": "\ufffd"}),
        (b"NATS/1.0 404 \xff\r\n\r\n", {"Status": "404", "Description": "\ufffd"}),
        (b"NATS/1.0\r\nA\xff: b\r\nA B: c\r\n: d\r\nE\r\n\r\n", {}),
        (b"NATS/1.0", {}),
        (b"?", {}),
    ],
)
def test_any_block_is_read(block: bytes, headers: dict[str, str]) -> None:
    """What cannot be read is left out: nats-py ended its reading, and the connection stayed open and deaf."""
    assert read_headers(block) == headers


@pytest.mark.parametrize(
    ("reply", "headers", "status"),
    [
        (b"", {"Status": "404"}, "404"),
        (b"", {"Status": "204", "Nats-Last-Sequence": "7"}, "204"),
        (b"$JS.FC.x", {"Status": "100"}, "100"),
        (b"$JS.ACK.S.c.1.2.3.4.5", {"Status": "404"}, None),
        (b"", {"Status": "204", "Nats-Sequence": "7"}, None),
    ],
)
def test_what_is_stored_is_no_word_of_the_server(reply: bytes, headers: dict[str, str], status: str | None) -> None:
    """Whoever published it wrote its status."""
    drop_foreign_status(headers, reply)
    assert headers.get("Status") == status


def test_any_subject_can_be_read() -> None:
    """What is no UTF-8 is replaced by what no id holds."""
    assert (decode_subject(b"a.\xff.b"), decode_subject(b"a.b"), decode_subject("ä".encode())) == ("a.\ufffd.b", "a.b", "ä")
