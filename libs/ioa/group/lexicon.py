"""What a single word tells: a feature, or marks on the text it stands in, each as a number that is looked up in a cache.

A feature has 32 bits. Its last byte is what a sketch keeps of it: general words have the low ones, things the high ones, so that
a sketch still tells what is about something. Flags of the word stand above its feature, and marks above those.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from ioa.group import synonyms, vocabulary
from ioa.group.numerals import NUMBERS, SPREAD, parts_of
from ioa.group.stems import singular_of, stem_of, verbs_of

FEATURE = 0xFFFF_FFFF
GENERAL_BYTES = bytes(range(96))
"""The last bytes of the features of general words."""

EXACT, CAPITAL, QUOTED, PARTICIPLE = (1 << bit for bit in range(32, 36))
WORDS = 1 << 36
"""Codes below are words, all others marks."""

NEGATES, CLAUSE_ENDS, SENTENCE_ENDS, OPENS, REMINDS, HAS, IS, TO, YOU, AUXILIARY, READY, PLEADS, QUESTION, SPREADS = (
    1 << bit for bit in range(36, 50)
)
"""Marks by which a text is read. `OPENS` is a function word in capitals, after which a name is not the first word. `SPREADS` is a
word that may be part of a number."""
ASKS, NAMES_QUESTION, CORRECTS, PLANS, OBLIGES, COMMITS, PAST, REPORTS, SETTLES, SUPPOSES, MAY, CANNOT, WAS = (
    1 << bit for bit in range(50, 63)
)
"""Marks of what a text does: `REPORTS` that something has been done, or `SETTLES` that it is."""
POLES_FROM = 63
"""The first of the marks of `vocabulary.POLES`, two for each pair."""
MAY_CORRECT = 1 << POLES_FROM + 2 * len(vocabulary.POLES)

_MAX_PIECE_CHARS = 64
_MAX_PIECES = 32_768
_LEAST_SHARED = 4
"""Shorter stems are shared by words that have nothing to do with each other."""

_MARKING: tuple[tuple[frozenset[str], int], ...] = (
    (vocabulary.NEGATIONS, NEGATES),
    (vocabulary.CORRECTING, CORRECTS),
    (vocabulary.PERHAPS_CORRECTING, MAY_CORRECT),
    (vocabulary.AUXILIARIES, AUXILIARY | PLANS),
    (vocabulary.POSSIBLE, AUXILIARY | MAY),
    (vocabulary.IMPOSSIBLE, MAY | CANNOT),
    (vocabulary.PLANNING, PLANS),
    (vocabulary.OBLIGING, OBLIGES),
    (vocabulary.COMMITTING, COMMITS),
    (vocabulary.PLEADING, PLEADS),
    (vocabulary.QUESTION_WORDS, NAMES_QUESTION),
    (vocabulary.REMINDING, REMINDS),
    (vocabulary.ADDRESSING, YOU),
    (vocabulary.SETTLED, READY),
    (vocabulary.CONDITIONAL, SUPPOSES),
    (SPREAD, SPREADS),
    (frozenset({"has", "have"}), HAS),
    (frozenset({"am", "are", "is"}), IS),
    (frozenset({"to"}), TO),
    (frozenset({"but", "only"}), CLAUSE_ENDS),
    (frozenset({"been", "did", "had", "was", "were"}), PAST | WAS),
    *((frozenset(words.split()), 1 << bit) for bit, words in enumerate(chain.from_iterable(vocabulary.POLES), start=POLES_FROM)),
)
_SAYING_NOTHING = (
    vocabulary.NEGATIONS | vocabulary.CORRECTING | vocabulary.PERHAPS_CORRECTING | vocabulary.FUNCTION_WORDS | vocabulary.COURTESY
)
_PARTICIPLES = frozenset("begun bought built chosen cut done found held kept left made met paid put sent set sold written".split())

_WORD = re.compile(r"[\w'’]+(?:[.\-/_:,][\w'’]+)*%?|[\"“«]|[$€£]|[.!?:;,()]+")
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound"}
_SEPARATORS = re.compile(r"[.\-/_:,%]+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNDONE = re.compile(r"un(?!der|i|til|less|fortun|usual|expect)\w{4,}(?:ed|able|ful|ly|al|ic|ible|t)")
_GROUP_ENDS = re.compile(r"[\n|]")
_AFFIRMED = {"ca": "can", "wo": "will", "sha": "shall"}
_OF_CLITICS = {"ll": PLANS | COMMITS, "d": PLANS}
_CLITIC = re.compile(r"['’](s|ll|re|ve|d|m)$", re.IGNORECASE)


def codes_of(piece: str) -> tuple[int, ...]:
    """Tell what a piece of text without spaces means, punctuation included; nothing for most function words."""
    if piece.isascii() and piece.isalpha() and piece.lower() not in NUMBERS:
        return tuple(_codes(piece, 0))
    codes: list[int] = []
    quoted = 0
    for found in _WORD.findall(piece):
        if found in '"“«':
            quoted = 0 if codes else QUOTED
        elif found[0] in ".!?:;,()":
            codes.append(_mark_of(found))
        elif found in _CURRENCIES:
            codes.append(feature_of(_CURRENCIES[found]))
        elif (exact := _exact(found)) is not None:
            codes += exact
        else:
            codes += (code | quoted if code < WORDS else code for part in _SEPARATORS.split(found) for code in _word(part))
    return tuple(codes)


class _Codes(dict[str, tuple[int, ...]]):
    """Pieces that were read before. A hit is one look into a table; an `lru_cache` also writes to a list then, all of it cold."""

    def __missing__(self, piece: str) -> tuple[int, ...]:
        codes = codes_of(piece)
        if len(piece) <= _MAX_PIECE_CHARS:
            if len(self) >= _MAX_PIECES:
                self.clear()
            self[piece] = codes
        return codes


known_codes_of = _Codes().__getitem__
"""The same, remembered."""


@lru_cache(maxsize=_MAX_PIECES)
def feature_of(word: str) -> int:
    """The feature of one plain word, and of all words that say the same."""
    lower, stem = word.lower(), stem_of(word.lower())
    for form in (lower, singular_of(lower), *verbs_of(lower), f"{stem}-"):
        if form in _TOPICAL:
            return feature_of_text(_TOPICAL[form])
        if form in _GENERAL:
            return _feature(_GENERAL[form], 0, len(GENERAL_BYTES))
    return feature_of_text(stem)


def feature_of_text(text: str) -> int:
    """The feature of something that has no other words."""
    return _feature(text, len(GENERAL_BYTES), 256 - len(GENERAL_BYTES))


def _feature(text: str, lowest: int, count: int) -> int:
    digest = zlib.crc32(text.encode()) * 0x9E37_79B1 & FEATURE
    return (digest & ~0xFF) | (lowest + (digest >> 4) % count)


def _mark_of(punctuation: str) -> int:
    ends = CLAUSE_ENDS if set(punctuation) <= set(",()") else CLAUSE_ENDS | SENTENCE_ENDS
    return ends | QUESTION if "?" in punctuation else ends


def _word(part: str) -> Iterator[int]:
    clitic = _CLITIC.search(part)
    word = (part[: clitic.start()] if clitic else part).strip("'’")
    if unspaced := _UNSPACED.findall(word):
        for run in unspaced:
            yield from (feature_of(run[at : at + 2]) for at in range(max(1, len(run) - 1)))
    elif word:
        yield from _codes(word, _OF_CLITICS.get(clitic.group(1).lower(), 0) if clitic else 0)


def _codes(word: str, marks: int) -> Iterator[int]:
    lower, is_capital = word.lower(), word[0].isupper()
    negates = lower.endswith(("n't", "n’t"))
    marks |= _MARKS_OF.get(_AFFIRMED.get(lower[:-3], lower[:-3]) if negates else lower, 0)
    if negates and marks & MAY:
        marks |= CANNOT
    if negates or lower in _SAYING_NOTHING:
        marks |= (OPENS if is_capital else 0) | (NEGATES if negates else 0)
        if marks:
            yield marks
        return
    if _UNDONE.fullmatch(lower) and lower not in _GENERAL and lower not in _TOPICAL:
        word, marks = word[2:], marks | NEGATES
    if marks:
        yield marks
    is_participle = (lower.endswith("ed") and len(lower) > 3) or lower in _PARTICIPLES
    feature = feature_of(word)
    is_name = is_capital and feature & 0xFF not in GENERAL_BYTES
    yield feature | (CAPITAL if is_name else 0) | (PARTICIPLE if is_participle else 0)


def _exact(chunk: str) -> list[int] | None:
    """Read a chunk that is a number, perhaps with its unit, an identifier, a file or an address; None for words."""
    lower = chunk.lower()
    if said := parts_of(chunk):
        numbers, words = said
        marks = [_MARKS_OF[lower]] if lower in _MARKS_OF else []
        return marks + [feature_of_text(number) | EXACT for number in numbers] + [code for word in words for code in _word(word)]
    if "_" in lower.strip("_'’") or re.search(r"\w{2}\.\w{2}", lower) or lower.count("/") > 1:
        return [feature_of_text(lower.strip("'’")) | EXACT]
    return None


def _groups(table: str) -> Iterator[list[str]]:
    return (group.split() for group in _GROUP_ENDS.split(table) if group)


def _canonical(table: str) -> dict[str, str]:
    """Map each word, and each stem with a hyphen, to the first word of its group; a word of several groups belongs to the first."""
    canonical: dict[str, str] = {}
    for group in _groups(table):
        for word in group:
            canonical.setdefault(word, group[0])
            if len(stem := stem_of(word)) >= _LEAST_SHARED:
                canonical.setdefault(f"{stem}-", group[0])
    return canonical


def _opposites() -> dict[int, frozenset[int]]:
    opposites: dict[int, frozenset[int]] = {}
    for one, other in _groups(synonyms.OPPOSITES):
        for said, meant in ((feature_of(one), feature_of(other)), (feature_of(other), feature_of(one))):
            opposites[said] = opposites.get(said, frozenset()) | {meant}
    return opposites


def _marks() -> dict[str, int]:
    marks: dict[str, int] = {}
    for words, mark in _MARKING:
        marks |= {word: marks.get(word, 0) | mark for word in words}
    return marks


_MARKS_OF = _marks()
_GENERAL = _canonical(synonyms.GENERAL)
_TOPICAL = {word: group for word, group in _canonical(synonyms.TOPICAL).items() if word not in _GENERAL}
OPPOSITES = _opposites()
"""For each general word what is never said for it."""
