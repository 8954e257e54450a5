"""Text that no rule may cut or look into: quotations, code, addresses, file names, numbers, abbreviations, parentheses.

Each such span is replaced by one character of a private-use plane before the rules run and put back afterwards. So a full stop
in `notes.txt`, a comma in `1,000` and an "and" between quotation marks never look like the end of a need. The plane's quarter
says what the span is, which lets the rules ask for "a file" with a plain regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import partial


class SpanKind(IntEnum):
    """What a masked span is; the value is the first code point of its quarter of plane 15."""

    FILE = 0xF0000
    ADDRESS = 0xF4000
    QUOTATION = 0xF8000
    OTHER = 0xFC000


_QUARTER = 0x4000
_LAST = 0xFFFFD


def _class(first: int, last: int) -> str:
    return f"[{chr(first)}-{chr(last)}]"


INPUT = _class(SpanKind.FILE, SpanKind.ADDRESS + _QUARTER - 1)
"""A file name or an address."""
NAMED = _class(SpanKind.FILE, SpanKind.QUOTATION + _QUARTER - 1)
"""A file name, an address or a quotation: something a pronoun can stand for."""
MASKED = _class(SpanKind.FILE, _LAST)

_EXTENSIONS = frozenset(
    "csv tsv tab txt text md markdown rst log json jsonl ndjson yaml yml toml ini cfg conf xls xlsx doc docx ppt pptx pdf htm "
    "html xml png jpg jpeg gif svg webp py ipynb js ts java c h cpp rs go rb sh sql db sqlite parquet feather zip gz tar wav "
    "mp3 mp4 tex bib eml ics dat bin env css php lua r odt ods".split()
)
_PATH = r"[\w~./-]"
_FILES = (re.compile(rf"(?P<quote>[`'\"])(?P<path>{_PATH}++)(?P=quote)"), re.compile(rf"(?<!{_PATH})(?P<path>{_PATH}++)(?!\()"))
_BEFORE_FILES: tuple[tuple[SpanKind, re.Pattern[str]], ...] = (
    (SpanKind.QUOTATION, re.compile(r"```.*?(?:```|\Z)", re.DOTALL)),
    (SpanKind.QUOTATION, re.compile(r"\"\"\".*?(?:\"\"\"|\Z)", re.DOTALL)),
    (SpanKind.ADDRESS, re.compile(r"\b(?:(?:https?|ftp|s3|file)://|www\.)[^\s<>\"'`,;)\]]++", re.IGNORECASE)),
    (SpanKind.OTHER, re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++")),
)
_AFTER_FILES: tuple[tuple[SpanKind, re.Pattern[str]], ...] = (
    (SpanKind.QUOTATION, re.compile(r"`[^`\n]++`|\"[^\"]++\"|“[^“”]++”|«[^«»]++»|„[^„“”]++[“”]")),
    (SpanKind.QUOTATION, re.compile(r"(?<![\w\"])['‘][^'‘’\n]++['’](?!\w)")),
    (SpanKind.OTHER, re.compile(r"(?<![\d.,:/])[-+]?\d++(?:[.,:/]\d++)++%?|\b\d++!(?![\w!])")),
    (SpanKind.OTHER, re.compile(r"(?<!\w)\.\d++")),
    (
        SpanKind.OTHER,
        re.compile(
            r"\b(?:e\. ?g|i\. ?e|etc|vs|cf|approx|nr|mr|mrs|dr|prof|inc|ltd|jr|sr|u\.s(?:\.a)?|u\.k|a\.m"
            r"|p\.m)\.(?=\s?[a-z0-9,)(]|[,)])",
            re.IGNORECASE,
        ),
    ),
    (SpanKind.OTHER, re.compile(r"\((?!\w{1,2}\))[^()]*+\)|\[[^\[\]]*+\]|\{[^{}]*+\}")),
)
_OURS = re.compile(MASKED)


class Mask:
    """Replace what must not be cut, and put it back."""

    def __init__(self) -> None:
        self._spans: dict[str, str] = {}
        self._literals: dict[str, str] = {}
        self._next = dict.fromkeys(SpanKind, 0)

    def cover(self, text: str) -> str:
        """Replace each masked span by one character. A character that is one of ours already is kept as it is."""
        text = _OURS.sub(lambda match: self._store(self._literals, SpanKind.OTHER, match.group()), text)
        text = self._covered(_BEFORE_FILES, text)
        for pattern in _FILES:
            text = pattern.sub(self._file, text)
        return self._covered(_AFTER_FILES, text)

    def _covered(self, patterns: Sequence[tuple[SpanKind, re.Pattern[str]]], text: str) -> str:
        for kind, pattern in patterns:
            text = pattern.sub(partial(self._span, kind), text)
        return text

    def _span(self, kind: SpanKind, match: re.Match[str]) -> str:
        """Cover a span; what ends a sentence is no part of an address."""
        span = match.group()
        end = len(span.rstrip(".?!:")) if kind is SpanKind.ADDRESS else len(span)
        return self._store(self._spans, kind, span[:end]) + span[end:]

    def _file(self, match: re.Match[str]) -> str:
        """Cover what is a file's name by its end; a full stop behind it is the sentence's."""
        name = match["path"].rstrip(".")
        stem, _, extension = name.rpartition(".")
        if extension.lower() not in _EXTENSIONS or not stem.strip("./~"):
            return match.group()
        whole, stop = (match.group(), "") if match.group() != match["path"] else (name, match["path"][len(name) :])
        return self._store(self._spans, SpanKind.FILE, whole) + stop

    def uncover(self, text: str) -> str:
        """Put every span back, however deep they nest."""
        return "".join(
            self._literals.get(char) or (self.uncover(self._spans[char]) if char in self._spans else char) for char in text
        )

    def _store(self, where: dict[str, str], kind: SpanKind, span: str) -> str:
        offset = self._next[kind]
        if kind + offset > _LAST or offset >= _QUARTER:
            return span if where is self._spans else "\N{REPLACEMENT CHARACTER}"
        self._next[kind] += 1
        char = chr(kind + offset)
        where[char] = span
        return char
