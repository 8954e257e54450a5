"""Measure a text by an expression that is made of what is looked for."""

import re
import unicodedata


def occurrences(text: str, term: str) -> int:
    """How often a phrase occurs, in any case; a word at its edge is whole, a sign may touch anything. Accents are what one sees."""
    edge, (text, term) = r"(?:(?<!\w)|(?!\w))", map(_as_seen, (text, term))
    return len(re.compile(rf"{edge}{re.escape(term)}{edge}", re.IGNORECASE).findall(text))


def _as_seen(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).replace("\u00ad", "").split())
