"""Unicode normal forms of texts, in time linear in their length."""

from __future__ import annotations

import re
from typing import Literal
from unicodedata import normalize

_PIECE = re.compile(r"\s{1,256}+|\S{1,256}+")
"""Part of a text that is normalised at once: `normalize` takes quadratic time for a sequence of combining marks (UAX #15)."""


def normal_form(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return a text in a normal form. A word longer than 256 characters is normalised in pieces."""
    return text if text.isascii() else "".join([normalize(form, piece) for piece in _PIECE.findall(text)])
