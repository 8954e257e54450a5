"""What a text says, as a set of features that survive another wording: stems of content words, numbers and identifiers.

Function words, courtesy and phrases such as "as I said" say nothing, near synonyms say the same, and a word that is negated is
another word. All of it is tables and arithmetic, so that every router comes to the same features.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from ioa.group.vocabulary import CORRECTING, COURTESY, FUNCTION_WORDS, NEGATIONS, NUMBERS, PERHAPS_CORRECTING, SYNONYMS

NEGATED = 0x8000
"""Set in the feature of a word that was negated; the other 15 bits are the word's."""

_MAX_WORD_CHARS = 40
_MAX_READ_CHARS = 16_000
"""Of a longer text the rest counts as one thing, the same or not."""

_ENUMERATION = re.compile(r"(?m)^[ \t]*(?:\(?\d{1,2}[.)]|[-*•#]+)[ \t]+")
_QUOTES = re.compile(r"(?m)^[ \t]*>.*$|“[^“”]{12,}”|\"[^\"\n]{12,}\"|«[^«»]{12,}»")
_SAID = "(?:said|mentioned|noted|stated|explained|suggested|proposed|pointed out|wrote|outlined|described|discussed)"
_BACK_REFERENCES = re.compile(
    r"\b(?:as|like) \w+(?:['’]ve| have| had)? (?:already |just |previously )?"
    + _SAID
    + r"(?: (?:before|earlier|above|already|previously|in (?:turn|message|step) \w+|\w+ (?:messages?|turns?) ago))?\b"
    r"|\bfor the (?:second|third|fourth|last|\w+th) time\b|\b(?:in|from) (?:turn|message) \d+\b"
    r"|\b(?:in other words|to put it|to sum up|in sum|nothing but|not only|why not|of course)\b"
    r"|\b(?:no (?:problem|worries|doubt|objections?)|don['’]t (?:worry|forget|hesitate))\b",
    re.IGNORECASE,
)
_CHUNK = re.compile(r"[\w'’]+(?:[.\-/_:,][\w'’]+)*%?")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_REQUESTS = re.compile(r"\?|\b(?:please|kindly|bitte|(?:can|could|would|will) (?:you|someone|anyone|somebody)|you (?:to|should))\b")
_SENTENCE_END = re.compile(r"[.!?:;\n]")
_CLAUSE_END = re.compile(r"[,.!?:;\n()]")
_PERFECT = re.compile(
    r"(?:\b(?:has|have)|['’](?:s|ve))\s+(?:(?:now|just|already|finally|also|both|all)\s+)*(?:been\s+)?"
    r"(?!been|got|need)\w+(?:ed|en|un|pt|nt|lt|id|ade)\b"
)
_PAST = re.compile(r"\w\wed\b|\b(?:was|were|done|has been|have been)\b")
_MOST_NAMES = 0.3
"""With more words in capitals than this share it is a language, or a heading, that capitalizes more than names."""

_SUFFIXES = tuple("ization ational ation ating ator ated ate ment ity ern ion ing er ied ive al ly ed en or es y e".split())
_LEAST_STEM = 3
_LEAST_SAID = 3
"""With fewer features of its own a text says what it quotes."""


@dataclass(frozen=True)
class Wording:
    """What a text says.

    Attributes:
        features: Everything it says, in order, each once.
        names: Those that are capitalized within a sentence: what they name can hardly be said in other words.
        exact: Numbers, identifiers and code: these have no other words at all.
        asks: It is a question or a request.
        corrects: It takes something back.
        may_correct: It has a word that may announce something other than before, or may be mere ornament.
        reports: It says that something has been done.
        past: It speaks of what was done, in any tense.
    """

    features: tuple[int, ...]
    names: frozenset[int]
    exact: frozenset[int]
    asks: bool
    corrects: bool
    may_correct: bool
    reports: bool
    past: bool


class _Sense(Enum):
    """What a word does in its text."""

    SAYS = auto()
    NAMES_EXACTLY = auto()
    NEGATES = auto()
    CORRECTS = auto()
    PERHAPS_CORRECTS = auto()
    DECORATES = auto()


class _Word(NamedTuple):
    sense: _Sense
    feature: int = 0
    is_capital: bool = False


def wording_of(text: str) -> Wording:
    """Read a text. What it quotes does not count, if it says something beside it."""
    head = text[:_MAX_READ_CHARS]
    own_words = _QUOTES.sub(" ", head)
    read = _read(own_words)
    if len(read.features) < _LEAST_SAID and len(own_words) != len(head):
        read = _read(head)
    if len(text) <= _MAX_READ_CHARS:
        return read
    rest = _hash(text[_MAX_READ_CHARS:])
    return replace(read, features=(*read.features, rest), exact=read.exact | {rest})


def feature_of(name: str) -> int:
    """The feature of one plain word."""
    stem = stem_of(name.lower())
    return _hash(_CANONICAL.get(stem, stem))


def _read(text: str) -> Wording:
    plain = _BACK_REFERENCES.sub(" ", _ENUMERATION.sub("\n", text))
    features: dict[int, None] = {}  # a set that keeps its order
    names: set[int] = set()
    exact: set[int] = set()
    senses: set[_Sense] = set()
    negated = False
    end = words = 0
    for found in _CHUNK.finditer(plain):
        gap = plain[end : found.start()]
        starts_sentence = end == 0 or (gap != " " and _SENTENCE_END.search(gap) is not None)
        if starts_sentence or (gap != " " and _CLAUSE_END.search(gap)):
            negated = False
        end = found.end()
        for word in _words_of(found.group()) if end - found.start() <= _MAX_WORD_CHARS else _parse(found.group()):
            words += 1
            senses.add(word.sense)
            if word.sense is _Sense.NEGATES:
                negated = True
            elif word.sense is _Sense.NAMES_EXACTLY:
                exact.add(word.feature)
                features[word.feature] = None
            elif word.sense is _Sense.SAYS:
                features[word.feature | NEGATED if negated else word.feature] = None
                if word.is_capital and not starts_sentence:
                    names.add(word.feature)
                negated = False
    lower = plain.lower()
    return Wording(
        features=tuple(features),
        names=frozenset(names) if len(names) <= _MOST_NAMES * words else frozenset(),
        exact=frozenset(exact),
        asks=_REQUESTS.search(text.lower()) is not None,
        corrects=_Sense.CORRECTS in senses,
        may_correct=_Sense.PERHAPS_CORRECTS in senses,
        reports=_PERFECT.search(lower) is not None,
        past=_PAST.search(lower) is not None,
    )


def _parse(chunk: str) -> tuple[_Word, ...]:
    if (value := _exact_value(chunk)) is not None:
        return (_Word(_Sense.NAMES_EXACTLY, _hash(value)),)
    return tuple(_word(part) for part in _split(chunk))


_words_of = lru_cache(maxsize=16_384)(_parse)


def _word(part: str) -> _Word:
    lower = part.lower()
    if lower in NEGATIONS or lower.endswith(("n't", "n’t")):
        return _Word(_Sense.NEGATES)
    if lower in CORRECTING:
        return _Word(_Sense.CORRECTS)
    if lower in PERHAPS_CORRECTING:
        return _Word(_Sense.PERHAPS_CORRECTS)
    if lower in FUNCTION_WORDS or lower in COURTESY:
        return _Word(_Sense.DECORATES)
    return _Word(_Sense.SAYS, feature_of(lower), part[0].isupper())


def _exact_value(chunk: str) -> str | None:
    """The chunk itself if it is a number, an identifier, a file or an address; None for words."""
    lower = chunk.lower().strip("'’")
    if lower in NUMBERS:
        return NUMBERS[lower]
    if any(character.isdigit() for character in lower):
        number = lower.rstrip("%").replace(",", "")
        return re.sub(r"\.0+$", "", number)
    if "_" in lower.strip("_") or re.search(r"\w{2}\.\w{2}", lower) or lower.count("/") > 1:
        return lower
    return None


def _split(chunk: str) -> Iterator[str]:
    """The words of a chunk; two characters each in scripts that put no spaces between words."""
    for part in re.split(r"[.\-/_:,%]+", chunk):
        word = re.sub(r"['’](?:s|ll|re|ve|d|m)$", "", part, flags=re.IGNORECASE).strip("'’")
        if unspaced := _UNSPACED.findall(word):
            for run in unspaced:
                yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
        elif word:
            yield word


def stem_of(lower: str) -> str:
    """Cut inflections and common derivations off an English word, roughly; another language's words are cut alike."""
    word = lower.replace("isation", "ization").replace("yse", "yze")
    if word.endswith(("ise", "ised", "ises", "ising")):
        word = word.replace("is", "iz")
    word = _singular(word)
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _LEAST_STEM:
            word = word[: -len(suffix)]
            break
    if len(word) > _LEAST_STEM and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word.rstrip("ey") if len(word) > _LEAST_STEM + 1 else word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "zes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _LEAST_STEM else word


def _canonical() -> dict[str, str]:
    """Map each stem to the first of its group; a word of several groups belongs to the first."""
    groups = [line.split() for line in SYNONYMS.split("\n") if line]
    canonical: dict[str, str] = {}
    for group in groups:
        for word in group:
            canonical.setdefault(stem_of(word), stem_of(group[0]))
    return canonical


def _hash(value: str) -> int:
    return zlib.crc32(value.encode()) & (NEGATED - 1)


_CANONICAL = _canonical()
