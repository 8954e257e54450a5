"""Recognizing that something has been said already (paper, section 4.2: repeated messages are half of what agents say)."""

from __future__ import annotations

import re
from collections.abc import Iterable

LOOKBACK = 8
"""How many of the last messages a new one is compared with."""
_SAME = 0.85
_WORD = re.compile(r"\w+")


def rephrases(text: str, earlier: Iterable[str]) -> bool:
    """Whether the text has nearly the same words as one of the earlier ones."""
    words = set(_WORD.findall(text.lower()))
    return any(_overlap(words, set(_WORD.findall(other.lower()))) >= _SAME for other in earlier)


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0
