"""Files that stand in a message of A2A. They are taken out of its body before the library reads it.

The library keeps a body and what it read of it for as long as it answers, which may be hours, and of a file several times its size
meanwhile. What is left of a message without its files is small.

A file is found by how it is written, and not by where it stands: what is a field of data, called as a file's bytes are, is put back
where it was. What stands for it is drawn anew for each message, so that nothing in a message can be taken for it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from ioa.errors import InvalidInputError, PayloadTooLargeError
from ioa.protocol.goal_order import MAX_GOAL_BYTES

MOST_FILES, MOST_PLAIN_BYTES = 1_000, 1_000_000
"""How many files are taken out, and how large what is left of a body may be."""
_BEGINS = re.compile(rb'"(?:raw|bytes)"\s*:\s*"')
"""What version 1 calls the bytes of a part, and 0.3."""
_DRAWN_BYTES, _NUMBER_BYTES = 15, 3
"""Of the name of a file; together such as base64 writes without an end of its own."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class Attached:
    """The files of one message, by what stands for each in its body.

    Args:
        draw: Draws as many random bytes.
    """

    def __init__(self, draw: Callable[[int], bytes]) -> None:
        self._drawn = draw(_DRAWN_BYTES)
        self._files: dict[str, bytes] = {}
        """In base64, as they came, by their names in base64."""
        self._left = MAX_GOAL_BYTES
        """How many bytes may be put back yet: what has more can be no part of a goal, nor of an answer."""

    def take_out(self, body: bytes) -> bytes:
        """Return a body of JSON with a short name in place of each file.

        A quote that no backslash precedes begins a text or ends one, and no text ends before a name: so what is found here is a
        field, wherever the body is JSON, and the library refuses what is none. No more is looked through than may be left.

        Raises:
            PayloadTooLargeError: Too much is left.
        """
        pieces, end, many, left = list[bytes](), 0, 0, MOST_PLAIN_BYTES
        while many < MOST_FILES and (found := _BEGINS.search(body, end, end + max(0, left))) is not None:
            begin, close = found.end(), body.find(b'"', found.end())
            if close < 0:
                break
            left -= begin - end
            many += 1
            told = body[begin:close].replace(rb"\/", b"/")
            if body[found.start() - 1 : found.start()] == b"\\" or told.translate(None, _BASE64):
                pieces.append(body[end:begin])
            else:
                name = _written(self._drawn + many.to_bytes(_NUMBER_BYTES, "big"))
                self._files[name] = told
                pieces += body[end:begin], name.encode()
                begin = close
            end = begin
        if len(body) - end + sum(map(len, pieces)) > MOST_PLAIN_BYTES:
            raise PayloadTooLargeError(
                f"Without the bytes of its files the message has more than {MOST_PLAIN_BYTES:,} bytes.",
                hint="Send long texts as the bytes of a part.",
            )
        return b"".join([*pieces, body[end:]])

    def take(self, raw: bytes) -> bytes:
        """Return what is in a file, once, by the name that stood for it; what is no name is the file.

        Raises:
            InvalidInputError: It is not in base64.
        """
        told = self._files.pop(_written(raw), None)
        if told is None:
            return raw
        if b"-" in told or b"_" in told:
            told = told.translate(_URL_SAFE)
        if len(told) % 4:
            told += b"=" * (-len(told) % 4)
        try:
            return binascii.a2b_base64(told, strict_mode=True)
        except binascii.Error as error:
            raise InvalidInputError(f"The bytes of a file are not in base64: {error}.") from None

    def put_back(self, value: Any) -> Any:
        """Return data of JSON as it came: a field of it may be called as the bytes of a file are. Each is put back once.

        Raises:
            PayloadTooLargeError: It has more than a goal may have.
        """
        if isinstance(value, dict):
            return {name: self.put_back(one) for name, one in value.items()}
        if isinstance(value, list):
            return [*map(self.put_back, value)]
        told = self._files.pop(value, None) if isinstance(value, str) else None
        if told is None:
            return value
        self._left -= len(told)
        if self._left < 0:
            raise PayloadTooLargeError(
                f"The data of the message has more than {MAX_GOAL_BYTES:,} bytes.", hint="Send large content as a file."
            )
        return told.decode()

    def drop(self) -> None:
        """Let go of the files, which are stored."""
        self._files.clear()


def _written(name: bytes) -> str:
    return base64.b64encode(name).decode()
