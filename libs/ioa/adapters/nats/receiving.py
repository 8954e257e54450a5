"""Reading what nats-server sends: messages are told apart as it writes them, and given to sinks as they are received.

nats-py takes any white space for what separates the parts of a line, of which nats-server lets strangers write some within a
subject: one such message ended the connection of whoever listened, and another was given to the subscription of its choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from ioa.adapters.nats.headers import read_headers
from ioa.adapters.nats.sinks import MessageSink

_END = b"\r\n"
_LONGEST_LINE = 1_000_000
"""What the server tells of itself, and of other servers, is one line."""


_Head: TypeAlias = tuple[bytes, int, bytes, int, int]
"""What stands in front of a message: its subject, subscription and reply subject, how many bytes its headers have, and how many
follow with them."""


def _head_of(line: bytes) -> _Head | None:
    """Read the line in front of a message, whose parts nats-server separates by one space; None if it is another line.

    Raises:
        ProtocolError: It is no such line.
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
    """Parses as nats-py does, but for messages, which are told apart as nats-server writes them."""

    async def parse(self, data: bytes = b"") -> None:
        """Take in what was received, and handle all of it that is whole.

        Raises:
            ProtocolError: It is not what a nats-server sends.
        """
        self.buf.extend(data)
        while (end := self.buf.find(_END)) >= 0:
            head, begin = _head_of(bytes(self.buf[:end])), end + len(_END)
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
        if len(self.buf) > _LONGEST_LINE:
            raise ProtocolError("nats: a line does not end")

    async def _parse_other(self, size_bytes: int) -> None:
        """Leave the first line to nats-py."""
        rest, line = self.buf[size_bytes:], self.buf[:size_bytes]
        self.buf = line
        await super().parse()
        if line:
            raise ProtocolError("nats: unknown protocol")
        if self.buf is line:  # else the connection was given up meanwhile, and the rest of it with it
            self.buf = rest


class StraightReader:
    """Gives messages for sinks to them as they are received, and leaves all else to nats-py's task that reads.

    What the task takes besides is a twentieth of what a router spends on a message: it is woken for each, by way of a buffer.
    """

    def __init__(self, client: Client, transport: TcpTransport, on_received: Callable[[], None]) -> None:
        assert transport._io_reader is not None, "what is read from is connected"
        self._client = client
        self._transport = transport
        self._on_received = on_received
        self._buffer = transport._io_reader.feed_data
        self._is_waited = False
        """Whether nats-py's task waits, and has handled all that was received."""
        transport._io_reader.feed_data = self._receive  # type: ignore[method-assign, assignment]
        transport.read = self._read  # type: ignore[method-assign]

    async def _read(self, buffer_size: int) -> bytes:
        self._is_waited = True
        try:
            return bytes(await TcpTransport.read(self._transport, buffer_size))
        finally:
            self._is_waited = False

    def _receive(self, data: bytes) -> None:
        self._on_received()
        rest = self._give(data) if self._is_waited and not self._client._ps.buf else data
        if rest:
            self._is_waited = False
            self._buffer(rest)

    def _give(self, data: bytes) -> bytes:
        """Give messages to their sinks, up to the first one that has none or is not whole; return the rest."""
        client, at = self._client, 0
        while (end := data.find(_END, at)) >= 0:
            try:
                head = _head_of(data[at:end])
            except ProtocolError:  # nats-py's task ends the connection
                break
            if head is None:
                break
            subject, sid, reply, header_bytes, size_bytes = head
            begin = end + len(_END)
            payload, until = begin + header_bytes, begin + size_bytes
            subscription: Any = client._subs.get(sid)
            if len(data) < until + len(_END) or subscription is None or not isinstance(subscription._future, MessageSink):
                break
            headers = read_headers(data[begin:payload]) or None if header_bytes else None
            message = client._build_message(sid, subject, reply, data[payload:until], headers)
            client.stats["in_msgs"] += 1
            client.stats["in_bytes"] += until - payload
            subscription._received += 1
            if 0 < subscription._max_msgs <= subscription._received:
                client._subs.pop(sid, None)
            subscription._future.set_result(message)
            at = until + len(_END)
        return data[at:]
