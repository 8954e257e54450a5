"""Parser of messages and headers that accepts any bytes which nats-server forwards.

- nats-py separates the parts of a message's line by any white space, while nats-server separates by one space, and allows vertical
  tabs and form feeds within subjects. Such a message would end the connection, or reach another subscription.
- nats-py stops reading from the connection at invalid headers, and needs a third of a second for a megabyte of small ones.
"""

from __future__ import annotations

from typing import TypeAlias

from nats.errors import ProtocolError
from nats.js.api import Header
from nats.protocol.parser import Parser

SEQUENCE = "Nats-Sequence"
"""Header with the sequence of a message that is read from a stream."""
LAST_OF = "Nats-Expected-Last-Subject-Sequence-Subject"
"""A header for which nats-py has no name."""
_VERSION, _END = b"NATS/1.0", b"\r\n"
_MAX_LINE_BYTES = 1_000_000
"""Longest line: the server's description of itself and of its cluster."""
_MAX_HEADER_LINES = 64
"""Header lines that are read, from the end: nats-server appends its own."""
_MAX_HEADER_BYTES = 100_000
"""Largest block of headers that is read. One header may contain an id of 64 kB."""
_MAX_NAME_BYTES = 128
_ACKNOWLEDGED = b"$JS.ACK."

_Head: TypeAlias = tuple[bytes, int, bytes, int, int]
"""Line before a message: subject, subscription id, reply subject, bytes of headers, bytes of headers and payload."""


class MessageParser(Parser):
    """nats-py's parser, except for messages."""

    async def parse(self, data: bytes = b"") -> None:
        """Append received bytes, and process all complete lines and messages."""
        self.buf.extend(data)
        while (end := self.buf.find(_END)) >= 0:
            head, begin = _parse_head(bytes(self.buf[:end])), end + len(_END)
            if head is None:
                await self._parse_other(begin)
                continue
            subject, sid, reply, header_bytes, size_bytes = head
            payload, until = begin + header_bytes, begin + size_bytes
            if len(self.buf) < until + len(_END):
                return
            block, data = bytes(self.buf[begin:payload]), bytes(self.buf[payload:until])
            del self.buf[: until + len(_END)]
            await self.nc._process_msg(sid, subject, reply, data, block or None)
        if len(self.buf) > _MAX_LINE_BYTES:
            raise ProtocolError("nats: a line does not end")

    async def _parse_other(self, size_bytes: int) -> None:
        """Pass the first line to nats-py's parser."""
        rest, line = self.buf[size_bytes:], self.buf[:size_bytes]
        self.buf = line
        await super().parse()
        if line:
            raise ProtocolError("nats: unknown protocol")
        if self.buf is line:  # otherwise the connection was replaced, with its buffer
            self.buf = rest


def _parse_head(line: bytes) -> _Head | None:
    """Parse the line before a message; return None for another line."""
    parts = line.split(b" ")
    if parts[0] not in (b"MSG", b"HMSG"):
        return None
    numbers = 1 if parts[0] == b"MSG" else 2
    replies = len(parts) - 3 - numbers
    try:
        if replies not in (0, 1):
            raise ValueError
        header_bytes = int(parts[-2]) if numbers > 1 else 0
        return parts[1], int(parts[2]), parts[3] if replies else b"", header_bytes, int(parts[-1])
    except ValueError:
        raise ProtocolError("nats: malformed MSG") from None


def read_headers(block: bytes) -> dict[str, str]:
    """Return the headers in a block. Lines that cannot be read are omitted, as are all of a block that is too large."""
    if len(block) > _MAX_HEADER_BYTES:
        return {}
    first, _, rest = block.partition(_END)
    found = _read_status(first[len(_VERSION) :])
    for line in rest.rstrip(_END).rsplit(_END, _MAX_HEADER_LINES)[-_MAX_HEADER_LINES:]:
        name, colon, value = line.partition(b":")
        key = name.strip()
        if colon and len(key) <= _MAX_NAME_BYTES and key.isascii() and len(key.split()) == 1:
            text = key.decode()  # the last line of a name counts, except for LAST_OF, of which nats-server obeys the first
            found[text] = f"{found[text]}, {_text(value)}" if text == LAST_OF and text in found else _text(value)
    return found


def _read_status(line: bytes) -> dict[str, str]:
    """Read the status after the version, such as ` 404 No Messages`."""
    code, _, description = line.strip().partition(b" ")
    if not code.isdigit():
        return {}
    status = {Header.STATUS.value: code.decode()}
    return status | {Header.DESCRIPTION.value: _text(description)} if description else status


def _text(value: bytes) -> str:
    return value.strip().decode("utf-8", "replace")


def drop_foreign_status(headers: dict[str, str], reply: bytes) -> None:
    """Remove the status from a stored message: its publisher wrote it, while nats-py attributes it to the server.

    Messages of consumers have an acknowledgement subject, and messages that are read have a sequence; the server's have neither.
    """
    if reply.startswith(_ACKNOWLEDGED) or SEQUENCE in headers:
        headers.pop(Header.STATUS.value, None)


def decode_subject(subject: bytes) -> str:
    """Return a subject as text, with U+FFFD, which no id contains, for bytes that are not UTF-8."""
    return subject.decode("utf-8", "replace")
