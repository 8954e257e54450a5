"""Words of a request, made comparable with names in the data: case, accents and punctuation do not count."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from ioa import InvalidInputError

QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|(?<!\w)\'([^\']+)\'(?!\w)|`([^`]+)`')
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PART = re.compile(r"[^\W_]+")


def fold(text: str) -> str:
    """Drop case and accents: `Zürich` and `ZURICH` become equal."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def name_words(name: str) -> tuple[str, ...]:
    """Split `unitPrice`, `unit_price` or `Unit price` into comparable words."""
    return tuple(fold(part) for part in _PART.findall(_CAMEL.sub(" ", name)))


def quotations(text: str) -> list[str]:
    """What stands in quotes of any kind, in order."""
    return [next(filter(None, match.groups())) for match in QUOTED.finditer(text)]


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


def account_for(text: str, known: Collection[str], hint: str) -> None:
    """Refuse a request with a word that its agent does not know (in lower case): it may be a wish that would not be fulfilled."""
    unknown = [word for word in re.findall(r"\w+", text.lower()) if word not in known]
    if unknown:
        raise InvalidInputError(
            f"{', '.join(map(repr, unknown))} {'is' if len(unknown) == 1 else 'are'} not understood here.", hint=hint
        )
