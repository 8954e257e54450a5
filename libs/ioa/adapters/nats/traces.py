"""Recognizing what nats-server writes of a message that asks to be traced (NATS ADR-41), by the header `Nats-Trace-Dest`.

It writes in the place of who sent the message, to any subject that he may publish on: all headers of the message, each character
of them as up to six, beyond what he might send himself. No setting of the server forbids it, and no permission tells it from what
he says. But where an import shows who asks it shows the server then, which nobody else can have it do. The text, which anybody
could write, is the server's there.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping

from nats.aio.msg import Msg

from ioa.adapters.nats.permissions import SHOWN_ASKER
from ioa.json_text import parse_json
from ioa.ports.connections import ConnectionId

_PACKED, _GZIP, _SNAPPY = "Content-Encoding", "gzip", "snappy"
_MOST_BYTES = 16_000_000
"""How long a text may be: twice what the server writes of a message of a megabyte, each byte as six."""
_BEGINNING_BYTES = 2_400
"""By how much of its beginning a text is told that anybody may have written."""
_HEAD_BYTES, _TAIL_BYTES = 16_384, 65_536
"""Where the text tells of the server, and, at its end, of what happened: behind all that the sender has written."""
_SERVER = re.compile(rb'^\{"server":\{[^{}]{0,2000}?"id":"([A-Z0-9]{1,80})"')
_CAME_IN = re.compile(rb'"events":\[\{"type":"in","ts":"[^"]{0,60}","kind":0,"cid":(\d{1,20}),')
"""By which connection of a client the message came in. Within texts a quotation mark is escaped."""
_GZIP_BITS = 16 + zlib.MAX_WBITS
_FRAME_HEAD, _CHECKSUM_BYTES, _PACKED_FRAME, _PLAIN_FRAME = 4, 4, 0, 1


def is_by_server(message: Msg) -> bool:
    """Whether the server has written a message itself in the account of who may publish there, and an import says so."""
    shown = (message.headers or {}).get(SHOWN_ASKER)
    if message.reply or shown is None:
        return False
    try:
        asker = parse_json(shown)
    except ValueError:
        return False
    return isinstance(asker, dict) and asker.get("kind") == "Account"


def hear_traced(message: Msg, hear: Callable[[ConnectionId], None]) -> bool:
    """Tell by which connection that came of which the server has written a message itself; whether it has, so that nobody asks."""
    is_one = is_by_server(message)
    if is_one and (connection := traced(message.data, message.headers)) is not None:
        hear(connection)
    return is_one


def traced(data: bytes, headers: Mapping[str, str] | None) -> ConnectionId | None:
    """Return by which connection the message came that a trace tells of; None if it is no trace of what a client sent."""
    head, tail = _ends(data, (headers or {}).get(_PACKED, ""))
    server, came_in = _SERVER.match(head), _CAME_IN.search(tail)
    return None if server is None or came_in is None else ConnectionId(server[1].decode(), int(came_in[1]))


def begins_like_one(data: bytes, headers: Mapping[str, str] | None) -> bool:
    """Whether a text begins as a trace does: no more is unpacked of it, since anybody may have packed what takes long to unpack."""
    packed, data = (headers or {}).get(_PACKED, ""), data[:_HEAD_BYTES]
    try:
        if packed == _GZIP:
            data = zlib.decompressobj(_GZIP_BITS).decompress(data, _BEGINNING_BYTES)
        elif packed == _SNAPPY:
            data = _plain(*next(_frames(data), (_PLAIN_FRAME, b"")), _BEGINNING_BYTES)
    except (zlib.error, ValueError, IndexError):
        return False
    return _SERVER.match(data) is not None


def _ends(data: bytes, packed: str) -> tuple[bytes, bytes]:
    """Return the beginning of a text and its end, however it is packed; nothing of one that cannot be read."""
    try:
        if packed == _GZIP:
            data = zlib.decompressobj(_GZIP_BITS).decompress(data, _MOST_BYTES)
        elif packed == _SNAPPY:
            frames = list(_frames(data))
            return _plain(*frames[0]), b"".join(_plain(*frame) for frame in frames[-2:])[-_TAIL_BYTES:]
    except (zlib.error, ValueError, IndexError):
        return b"", b""
    return data[:_HEAD_BYTES], data[-_TAIL_BYTES:]


def _frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tell the frames of snappy's format that hold text, each with its kind; each holds 64 kB of it at most."""
    at = 0
    while at + _FRAME_HEAD <= len(data):
        kind, size = data[at], int.from_bytes(data[at + 1 : at + _FRAME_HEAD], "little")
        if kind in (_PACKED_FRAME, _PLAIN_FRAME):
            yield kind, data[at + _FRAME_HEAD + _CHECKSUM_BYTES : at + _FRAME_HEAD + size]
        at += _FRAME_HEAD + size


def _plain(kind: int, block: bytes, most: int = _TAIL_BYTES) -> bytes:
    """Unpack a frame, as far as about `most` bytes.

    Raises:
        ValueError: It says to repeat what it has not said.
        IndexError: It ends too early.
    """
    if kind == _PLAIN_FRAME:
        return block
    at, found = 0, bytearray()
    while block[at] & 0x80:  # how long it is, which is not needed
        at += 1
    at += 1
    while at < len(block) and len(found) <= most:
        tag, at = block[at], at + 1
        if not tag & 3:
            size, at = _literal(block, tag, at)
            found += block[at : at + size]
            at += size
            continue
        size, back, at = _repeated(block, tag, at)
        if not 0 < back <= len(found):
            raise ValueError("a block of snappy repeats what it has not said")
        begin = len(found) - back
        once = bytes(found[begin : begin + size])
        found += (once * (size // len(once) + 1))[:size]
    return bytes(found)


def _literal(block: bytes, tag: int, at: int) -> tuple[int, int]:
    """Return how many bytes are said as they are, and where they begin."""
    size = tag >> 2
    wide = max(0, size - 59)
    return (int.from_bytes(block[at : at + wide], "little") if wide else size) + 1, at + wide


def _repeated(block: bytes, tag: int, at: int) -> tuple[int, int, int]:
    """Return how many bytes are repeated, from how far before, and where it goes on."""
    if tag & 3 == 1:
        return 4 + (tag >> 2 & 7), (tag >> 5) << 8 | block[at], at + 1
    wide = 2 if tag & 3 == 2 else 4
    return 1 + (tag >> 2), int.from_bytes(block[at : at + wide], "little"), at + wide
