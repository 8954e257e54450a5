"""Parser of the NATS protocol that separates the parts of a message's line as nats-server does: by one space.

nats-py separates them by any white space, while nats-server allows vertical tabs and form feeds within subjects. Such a message
would end the connection, or reach another subscription.
"""

from __future__ import annotations

from typing import TypeAlias

from nats.errors import ProtocolError
from nats.protocol.parser import Parser

_END = b"\r\n"
_MAX_LINE_BYTES = 1_000_000
"""Longest line: the server's description of itself and of its cluster."""


_Head: TypeAlias = tuple[bytes, int, bytes, int, int]
"""Line before a message: subject, subscription id, reply subject, bytes of headers, bytes of headers and payload."""


def _parse_head(line: bytes) -> _Head | None:
    """Parse the line before a message; return None for another line.

    Raises:
        ProtocolError: The line is malformed.
    """
    parts = line.split(b" ")
    if parts[0] not in (b"MSG", b"HMSG"):
        return None
    numbers = 1 if parts[0] == b"MSG" else 2
    replies = len(parts) - 3 - numbers
    if replies not in (0, 1):
        raise ProtocolError("nats: malformed MSG")
    try:
        header_bytes = int(parts[-2]) if numbers > 1 else 0
        return parts[1], int(parts[2]), parts[3] if replies else b"", header_bytes, int(parts[-1])
    except ValueError:
        raise ProtocolError("nats: malformed MSG") from None


class MessageParser(Parser):
    """nats-py's parser, except for messages."""

    async def parse(self, data: bytes = b"") -> None:
        """Append received bytes, and process all complete lines and messages.

        Raises:
            ProtocolError: The bytes are not of the NATS protocol.
        """
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
