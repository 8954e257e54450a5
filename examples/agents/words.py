"""Words of a request, made comparable with names in the data: case, accents, plurals and underscores do not count."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PART = re.compile(r"[^\W_]+")
NUMBER_WORDS = dict(zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True))


def fold(text: str) -> str:
    """Drop case and accents: `Zürich` and `ZURICH` become equal."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def stem(word: str) -> str:
    """Cut an English plural: `categories` and `category`, `boxes` and `box` become equal."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def name_stems(name: str) -> tuple[str, ...]:
    """Split `unitPrice`, `unit_price` or `Unit price (EUR)` into comparable words."""
    return tuple(stem(fold(part)) for part in _PART.findall(_CAMEL.sub(" ", name)))


def alike(left: str, right: str) -> bool:
    """Whether two words differ by a slip of the pen at most. Short words must be equal."""
    if left == right:
        return True
    if min(len(left), len(right)) < 5 or left[0] != right[0]:
        return False
    return SequenceMatcher(None, left, right).ratio() >= 0.85


def format_number(value: float) -> str:
    """Write a number exactly when it is short, else with four decimals (six digits when it is below one)."""
    if value != value:
        return "not available"
    if abs(value) == float("inf"):
        return "infinite"
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    if abs(value) >= 1:
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{value:.6g}"
