"""Message headers: a parser that accepts any bytes, because nats-server forwards what publishers wrote.

nats-py stops reading from the connection at invalid headers, and needs a third of a second for a megabyte of small ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from nats.js.api import Header

from ioa.adapters.nats.streams.compare_and_set import LAST_OF

_VERSION, _END = b"NATS/1.0", b"\r\n"
_MAX_LINES = 64
"""Lines that are read, from the end: nats-server appends its own."""
_MAX_BYTES = 100_000
"""Largest block that is read. One header may contain an id of 64 kB."""
_MAX_NAME_BYTES = 128
_ACKNOWLEDGED = b"$JS.ACK."
SEQUENCE = "Nats-Sequence"
"""Header with the sequence of a message that is read from a stream."""


def read_headers(block: bytes) -> dict[str, str]:
    """Return the headers in a block. Lines that cannot be read are omitted, as are all of a block that is too large."""
    if len(block) > _MAX_BYTES:
        return {}
    first, _, rest = block.partition(_END)
    return _status(first[len(_VERSION) :]) | _lines(rest)


def drop_foreign_status(headers: dict[str, str], reply: bytes) -> None:
    """Remove the status from a stored message: its publisher wrote it, while nats-py takes it for a word of the server.

    Messages of consumers have an acknowledgement subject, and messages that are read have a sequence; the server's have neither.
    """
    if reply.startswith(_ACKNOWLEDGED) or SEQUENCE in headers:
        headers.pop(Header.STATUS.value, None)


def decode_subject(subject: bytes) -> str:
    """Return a subject as text, with U+FFFD, which no id contains, for bytes that are not UTF-8."""
    return subject.decode("utf-8", "replace")


def written_bytes(headers: Mapping[str, str]) -> int:
    """Return the size of the block when the headers are sent."""
    lines = sum(len(f"{name}: {value}".encode()) + len(_END) for name, value in headers.items())
    return len(_VERSION) + len(_END) + lines + len(_END)


def _status(line: bytes) -> dict[str, str]:
    """Read the status after the version, such as ` 404 No Messages`."""
    code, _, description = line.strip().partition(b" ")
    if not code.isdigit():
        return {}
    status = {Header.STATUS.value: code.decode()}
    return status | {Header.DESCRIPTION.value: _text(description)} if description else status


def _lines(rest: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in rest.rstrip(_END).rsplit(_END, _MAX_LINES)[-_MAX_LINES:]:
        name, colon, value = line.partition(b":")
        key = name.strip()
        if colon and len(key) <= _MAX_NAME_BYTES and key.isascii() and len(key.split()) == 1:
            text = key.decode()  # the last line of a name counts, except for LAST_OF, of which nats-server obeys the first
            found[text] = f"{found[text]}, {_text(value)}" if text == LAST_OF and text in found else _text(value)
    return found


def _text(value: bytes) -> str:
    return value.strip().decode("utf-8", "replace")
