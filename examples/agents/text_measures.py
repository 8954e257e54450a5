"""Measure a text by an expression that is made of what is looked for."""

import re
import unicodedata

_UNSPACED = ("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI", "LAO", "KHMER", "MYANMAR")


def occurrences(text: str, term: str, *, in_any_case: bool = True) -> int:
    """How often a phrase occurs; a word at its edge is whole, a sign may touch anything. Accents are what one sees."""
    edge, (text, term) = "" if unspaced(term) else r"(?:(?<!\w)|(?!\w))", map(_as_seen, (text, term))
    if "_" not in term:  # `_bold_` is emphasis
        text = re.sub(r"\b_+|_+\b", "", text)
    first, last = (r"(?<!\d[.,])" * term[:1].isdigit(), r"(?![.,]\d)" * term[-1:].isdigit())  # 10 is no part of 10.5
    return len(re.compile(rf"{first}{edge}{re.escape(term)}{edge}{last}", re.IGNORECASE * in_any_case).findall(text))


def without_name(text: str, name: str) -> str:
    """A text without the name of a file, in any case, in quotes or not, and the folders before it."""
    return re.sub(rf"(?P<mark>[\"'`]?)(?:[^\s\"'`]*/)?{re.escape(name)}(?P=mark)", " ", text, flags=re.IGNORECASE)


def unspaced(text: str) -> str:
    """A letter of a text whose script puts no blanks between words; nothing if there is none."""
    return next((char for char in set(text) if unicodedata.name(char, "").startswith(_UNSPACED)), "")


def _as_seen(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).replace("\u00ad", "").replace("’", "'").split())
