"""What texts, and requests about them, are read by: expressions that are made of what is looked for."""

import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_UNSPACED = ("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI", "LAO", "KHMER", "MYANMAR")
_QUOTED = r"\"[^\"]+\"|„[^„“”]+[“”]|“[^“”]+”|«[^«»]+»|`[^`]+`|(?<!\w)['‘‚](?:[^'‘’]|(?<=\w)['’](?=\w))+['‘’](?!\w)"
_SIGNS = {"[": "(?:", "(": "(?:", "]": ")?", ")": ")", "|": "|", "*": "*"}
_FORMATS = re.compile(
    rb"(?i)(?:\xef\xbb\xbf)?\s*+(?:(?P<PDF>%pdf-)|(?P<RTF>\{\\rtf)|(?P<ZIP>pk\x03\x04)|(?P<HTML><!doctype html|<html\b)"
    rb"|(?P<XML><\?xml)|(?P<MIME>(?:[\w-]++:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)*?mime-version:))"
)


class Token(NamedTuple):
    """A word or sign of a request: in lower case, `FILE` for the name of a file, or `TERM` for what stands in quotes."""

    form: str
    said: str


def tokens_of(request: str, names: Iterable[str]) -> list[Token]:
    """Read a request word by word. The name of a file may stand in quotes, and folders before it."""
    composed = sorted((unicodedata.normalize("NFC", name) for name in names), key=len, reverse=True)
    name = rf"(?P<mark>[\"'`]?)(?:[^\s\"'`]*/)?(?<![\w.-])(?P<file>{'|'.join(map(re.escape, composed)) or '(?!)'})(?!\w)(?P=mark)"
    token = re.compile(rf"{name}|(?P<term>{_QUOTED})|\w+(?:[.'’-]\w+)*|\S", re.IGNORECASE)
    tokens = []
    for found in token.finditer(unicodedata.normalize("NFC", request)):
        said = found["file"] or found[0]
        is_term = found["term"] and said[1:-1].strip()
        tokens.append(Token("FILE" if found["file"] else "TERM" if is_term else said.replace(" ", "").lower(), said))
    return tokens


def forms(language: str) -> dict[str, re.Pattern[str]]:
    """Compile rules, a line each: a name, and of which words and earlier rules it is made. Those that begin with BEGIN are whole.

    `[…]` may be missing, `…*` may be said again, `|` stands between what may stand for one another.
    """
    rules = {"FILE": "FILE ", "TERM": "TERM "}
    for rule in language.strip().split("\n"):
        name, *parts = re.findall(r"[A-Z_]+|[a-z]+\??|\S", rule)
        rules[name] = f"(?:{''.join(rules.get(part) or _SIGNS.get(part) or f'{part} ' for part in parts)})"
    return {name: re.compile(rule) for name, rule in rules.items() if rule.startswith(f"(?:{rules['BEGIN']}") and name != "BEGIN"}


def other_format(path: Path, media_type: str, *, is_page: bool) -> str:
    """What a file is if it is no plain text, by its media type, if one is known, and by what it begins with; a page may be HTML."""
    if media_type and media_type != "application/octet-stream" and not media_type.startswith("text/"):
        return media_type
    found = _FORMATS.match(path.read_bytes())
    kind = found and found.lastgroup
    return "" if kind is None or (is_page and kind in ("HTML", "XML")) else f"written in {kind}"


def occurrences(text: str, term: str, *, in_any_case: bool = True) -> int:
    """How often a phrase occurs; a word at its edge is whole, a sign may touch anything. Accents are what one sees."""
    edge, (text, term) = "" if unspaced(term) else r"(?:(?<!\w)|(?!\w))", map(_as_seen, (text, term))
    if in_any_case:
        text, term = text.casefold(), term.casefold()  # which has `Straße` found in STRASSE
    if "_" not in term:  # `_bold_` is emphasis
        text = re.sub(r"\b_+|_+\b", "", text)
    first, last = (r"(?<!\d[.,])" * term[:1].isdigit(), r"(?![.,]\d)" * term[-1:].isdigit())  # 10 is no part of 10.5
    return len(re.findall(rf"{first}{edge}{re.escape(term)}{edge}{last}", text))


def unspaced(text: str) -> str:
    """A letter of a text whose script puts no blanks between words; nothing if there is none."""
    return next((char for char in set(text) if unicodedata.name(char, "").startswith(_UNSPACED)), "")


def _as_seen(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).replace("\u00ad", "").replace("’", "'").split())
