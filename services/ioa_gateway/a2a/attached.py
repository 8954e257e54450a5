"""Files that stand in a message of A2A. They are taken out of its body before the library reads it.

The library keeps a body and what it read of it for as long as it answers, which may be hours, and of a file several times its size
meanwhile. What is left of a message without its files is small.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from ioa.errors import InvalidInputError, PayloadTooLargeError

MOST_FILES, MOST_PLAIN_BYTES = 1_000, 1_000_000
"""How many files are taken out, and how large what is left of a body may be."""
_NAMES = ("raw", "bytes")
"""What version 1 calls the bytes of a part, and 0.3."""
_BEGINS = re.compile(rf'"(?:{"|".join(_NAMES)})"\s*:\s*"'.encode())
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class Attached:
    """The files of one message, by what stands for each in its body."""

    def __init__(self) -> None:
        self._files: dict[bytes, bytes] = {}
        """In base64, as they came."""

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
                name = f"file-{many}".encode()
                self._files[name] = told
                pieces += body[end:begin], base64.b64encode(name)
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
        told = self._files.pop(raw, None)
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
        """Return data of JSON as it came: a field of it may be called as the bytes of a file are."""
        if isinstance(value, dict):
            return {name: self._told(one) if name in _NAMES else self.put_back(one) for name, one in value.items()}
        return [*map(self.put_back, value)] if isinstance(value, list) else value

    def _told(self, value: Any) -> Any:
        if not isinstance(value, str):
            return self.put_back(value)
        try:
            told = self._files.get(base64.b64decode(value))
        except ValueError:
            return value
        return value if told is None else told.decode()

    def drop(self) -> None:
        """Let go of the files, which are stored."""
        self._files.clear()
