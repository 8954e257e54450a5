"""Reading the headers of messages, which strangers write: nats-server hands them on as they came.

nats-py stops reading at some of them, for good, and takes a third of a second for a megabyte of small ones. And a block that ends
too early, or without its last line's end, swallows the line that the server adds behind it, in which it tells who asks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nats.js.api import Header

from ioa.adapters.nats.keys import LAST_OF
from ioa.adapters.nats.permissions import SHOWN_ASKER

_VERSION, _END = b"NATS/1.0", b"\r\n"
_MOST_LINES = 64
"""How many lines are read, the last ones: the server adds its own at the end."""
_MOST_BYTES = 100_000
"""How long a block may be, of which one header may be an id of 64 kB. Of a longer one nothing is read but who asks."""
_LONGEST_NAME = 128
_WRITABLE_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""What nats-py writes as a name: a token of RFC 9110. At any other one it refuses to send the message."""
_SHOWN = SHOWN_ASKER.encode() + b": "
_BEGINS_SHOWN = _SHOWN + b'{"'
"""How the line begins in which the server tells who asks. Within its texts a quotation mark is escaped."""
_ACKNOWLEDGED = b"$JS.ACK."
SEQUENCE = "Nats-Sequence"
"""Under which name the server tells the place of a message that is read from a stream."""
UNREAD = "Ioa-Unread-Header-Bytes"
"""Under which name it is told how much of a block was not read."""


def read_headers(block: bytes) -> dict[str, str]:
    """Read a block of headers, whatever stands in it. Who asks is what the server has added last."""
    first, _, rest = block.partition(_END)
    is_read = len(block) <= _MOST_BYTES
    found = _status(first[len(_VERSION) :]) | _lines(rest) if is_read else {UNREAD: str(len(block))}
    shown = block.rfind(_BEGINS_SHOWN)
    if shown >= 0:
        found[SHOWN_ASKER] = _text(block[shown + len(_SHOWN) :].partition(_END)[0])
    return found


def drop_foreign_status(headers: dict[str, str], reply: bytes) -> None:
    """Take the status out of what was stored in a stream: whoever published it wrote that, and the server says nothing by it.

    What a consumer gives out is answered on a subject of its acknowledgement, and what is read is told with its place. The server's
    own words have neither.
    """
    if reply.startswith(_ACKNOWLEDGED) or SEQUENCE in headers:
        headers.pop(Header.STATUS.value, None)


def readable(subject: bytes) -> str:
    """Read a subject that a stranger wrote, with what is no UTF-8 replaced; no id holds what stands for it, so it names nobody."""
    return subject.decode("utf-8", "replace")


def header_bytes(headers: Mapping[str, str] | None) -> int:
    """Return how long the headers of a message are, as they were read, but for what the server has added."""
    if not headers:
        return 0
    unread = headers.get(UNREAD, "")
    written = sum(len(name) + len(value) for name, value in headers.items() if name != SHOWN_ASKER)
    return written + (int(unread) if _is_count(unread) else 0)


def writable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those headers that can be written again: a stranger's may be called as he likes."""
    return {name: value for name, value in headers.items() if _WRITABLE_NAME.fullmatch(name)}


def written_bytes(headers: Mapping[str, str]) -> int:
    """Return how long the block of some headers is as it is written."""
    lines = sum(len(f"{name}: {value}".encode()) + len(_END) for name, value in headers.items())
    return len(_VERSION) + len(_END) + lines + len(_END)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _LONGEST_NAME


def _status(line: bytes) -> dict[str, str]:
    """Read what stands behind the version, such as ` 404 No Messages`."""
    code, _, description = line.strip().partition(b" ")
    if not code.isdigit():
        return {}
    told = {Header.STATUS.value: code.decode()}
    return told | {Header.DESCRIPTION.value: _text(description)} if description else told


def _lines(rest: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = rest.rstrip(_END).rsplit(_END, _MOST_LINES)
    for line in lines[-_MOST_LINES:]:
        name, colon, value = line.partition(b":")
        key = name.strip()
        if colon and len(key) <= _LONGEST_NAME and key.isascii() and len(key.split()) == 1:
            said = key.decode()  # the last line of a name counts, since the server adds its own, but the first one it heeds
            found[said] = f"{found[said]}, {_text(value)}" if said == LAST_OF and said in found else _text(value)
    return found if len(lines) <= _MOST_LINES else found | {UNREAD: str(len(_VERSION) + len(_END) + len(rest))}


def _text(value: bytes) -> str:
    return value.strip().decode("utf-8", "replace")
