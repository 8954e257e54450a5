"""What a request speaks of: its words, made comparable with names in the data."""

import re
import unicodedata
from collections.abc import Collection

from ioa import DeclinedError, IoaError

TABLES = (".csv", ".tsv", ".tab")


def fold(text: str) -> str:
    """Drop case and accents: `Zürich` and `ZURICH` become equal, but not `≠` and `=`."""
    if text.isascii():
        return text.lower()
    composed = unicodedata.normalize("NFC", text).casefold()
    plain = (char if unicodedata.category(char) == "Sm" else unicodedata.normalize("NFKD", char) for char in composed)
    return "".join(char for char in "".join(plain) if not unicodedata.combining(char))


def slug(title: str) -> str:
    """What a title says as the name of a file."""
    signs = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}
    return re.sub(r"[^a-z0-9]+", "-", re.sub("[<>]=?", lambda sign: signs[sign[0]], title.lower())).strip("-")[:120]


def format_number(value: float) -> str:
    """Write a number with at most four decimals, or, when it is below one, six digits."""
    return f"{value + 0.0:.6g}" if abs(value) < 1 else f"{value:.4f}".rstrip("0").rstrip(".")


def of_length(text: str, most_chars: int = 2_000, hint: str = "") -> str:
    """Decline a request longer than any that is understood here: to search it might keep the whole agent busy for minutes."""
    if len(text) > most_chars:
        raise DeclinedError(f"The request has {len(text):,} characters; up to {most_chars:,} are read here.", hint=hint)
    return text


def account_for(text: str, known: Collection[str], hint: str = "", refusal: type[IoaError] = DeclinedError) -> None:
    """Decline a request with a word that its agent does not know (in lower case): it may be a wish that would not be fulfilled."""
    if unknown := [word for word in words_in(text) if word not in known]:
        raise refusal(are_not(unknown, "understood here"), hint=hint)


def words_in(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"\w+", text.lower())


def are_not(words: Collection[str], what: str) -> str:
    """Say of words what they are not."""
    return f"{', '.join(map(repr, words))} {'is' if len(words) == 1 else 'are'} not {what}."
