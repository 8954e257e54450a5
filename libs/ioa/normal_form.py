"""Writing a text in one of Unicode's normal forms, in time that grows with its length.

Python sorts the marks behind a letter by swapping neighbours, so that many of them in no order take time by the square of their
number: a message of 200 kB kept whoever read it from everything else for half a minute. No script needs more than a few of them
(UAX #15, stream-safe text).
"""

from __future__ import annotations

import re
from typing import Literal
from unicodedata import is_normalized, normalize

_PIECE = re.compile(r"\s{1,256}+|\S{1,256}+")
"""A word, or a piece of a very long one from its beginning on, wherever that stands: so that it comes out alike everywhere."""
_MOST_TIMES, _ROOM_CHARS = 2, 10_000
"""How much longer a text may become. One letter may become eighteen (`\ufdfa`): a message of those took a router a quarter of a
second. No language is written so, and a text that would become longer stays as it was written."""


def in_normal_form(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Write a text so. What belongs together across the pieces of a very long word stays as it was written."""
    if text.isascii() or is_normalized(form, text):  # which sees at once where marks stand in no order
        return text
    pieces, room = list[str](), _MOST_TIMES * len(text) + _ROOM_CHARS
    for piece in _PIECE.findall(text):
        pieces.append(piece if piece.isascii() else normalize(form, piece))
        room -= len(pieces[-1])
        if room < 0:
            return text
    return "".join(pieces)
