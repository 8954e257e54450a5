"""What a text says, as features that survive another wording: stems of content words, numbers and identifiers.

Function words, courtesy and phrases such as "as I said" say nothing, near synonyms say the same, and a word that is negated is
marked. All of it is tables and arithmetic, so that every router comes to the same features.

A router reads every message on its way, so reading is a split at spaces, one look into a cache for each piece, and one loop over
what is left without function words. Regular expressions run over a whole text only if something in it calls for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from ioa.group.lexicon import (
    ASKS,
    AUXILIARY,
    CANNOT,
    CAPITAL,
    CLAUSE_ENDS,
    COMMITS,
    EXACT,
    FEATURE,
    HAS,
    IS,
    MAY,
    NEGATES,
    OBLIGES,
    OPENS,
    PARTICIPLE,
    PAST,
    PLANS,
    PLEADS,
    QUESTION,
    QUOTED,
    READY,
    REMINDS,
    REPORTS,
    SENTENCE_ENDS,
    SETTLES,
    SPREADS,
    TO,
    WORDS,
    YOU,
    feature_of_text,
    known_codes_of,
)
from ioa.group.numerals import in_digits
from ioa.group.vocabulary import ACKNOWLEDGING

_MAX_READ_CHARS = 16_000
"""Of a longer text the rest counts as one thing, the same or not."""
_SHORT_CHARS = 80
_LEAST_SAID = 3
"""With fewer features of its own a text says what it quotes, and a short one may be mere courtesy."""
_I_WILL = COMMITS | PLANS
_PAIRING = HAS | IS | YOU | AUXILIARY
_MOST_NAMES = 0.3
"""With more words in capitals than this share it is a language, or a heading, that capitalizes more than names."""

_ENUMERATION = re.compile(r"(?m)^[ \t]*(?:\(?\d{1,2}[.)]|[-*•#]+)[ \t]+")
_LEFT_OUT = re.compile(r"\[…[^\]\n]{0,60}\]")
_QUOTES = re.compile(r"(?m)^[ \t]*>.*$|“[^“”]{12,}”|\"[^\"\n]{12,}\"|«[^«»]{12,}»")
_SAID = "(?:said|mentioned|noted|stated|explained|suggested|proposed|pointed out|wrote|outlined|described|discussed|asked)"
_AGAIN = "(?:summari[sz]e|recap|clarify|confirm|restate|reiterate|rephrase|highlight|emphasi[sz]e|be (?:clear|sure))"
_REMINDERS = re.compile(
    r"\b(?:as|like) \w+(?:['’]ve| have| had)? (?:already |just |previously )?"
    + _SAID
    + r"(?: (?:before|earlier|above|already|previously|in (?:turn|message|step) \w+|\w+ (?:messages?|turns?) ago))?\b"
    r"|\bfor the (?:second|third|fourth|last|\w+th) time\b|\b(?:in|from) (?:turn|message) \d+\b"
    r"|\b(?:in other words|to sum up|in sum)\b"
    rf"|(?:^|(?<=[.!?:;,] ))(?:so,? |just )?(?:to|let me(?: just)?) {_AGAIN}\b"
    r"|\bin (?:summary|essence|a nutshell)\b|\b(?:keep|bear) in mind(?: that)?\b"
    r"|\bif i (?:understand|understood)(?: (?:you|this|that|it|\w+ly))?(?: correctly| right)?\b|\bmy understanding (?:is|of)\b"
    r"|\b(?:it['’]?s|it is) (?:worth|important to) (?:noting|mentioning|note|mention|remember)(?: that)?\b"
    r"|\bso(?: that)? we(?:['’]re| are) (?:all )?aligned\b|\bhope (?:this|that|it) helps\b|\bfor (?:clarity|completeness)\b"
    r"|\b(?:no (?:problem|worries|doubt|objections?)|don['’]t (?:worry|forget|hesitate))\b",
    re.IGNORECASE,
)


class Wording(NamedTuple):
    """What a text says.

    Attributes:
        features: Everything it says, in order, each once; see `ioa.group.lexicon`.
        negated: Those that were negated.
        names: Those that are capitalized within a sentence, or quoted: what they name can hardly be said in other words.
        exact: Numbers, identifiers and code: these have no other words at all.
        news: What it says has been done.
        marks: What it does: asks, corrects, plans and so on, together.
    """

    features: tuple[int, ...]
    negated: frozenset[int]
    names: frozenset[int]
    exact: tuple[int, ...]
    news: frozenset[int]
    marks: int


def wording_of(text: str) -> Wording:
    """Read a text. What it quotes does not count, if it says something beside it."""
    head = text if len(text) <= _MAX_READ_CHARS else text[:_MAX_READ_CHARS]
    if not ('"' in head or "“" in head or "«" in head or ">" in head):
        read = _read(head)
    else:
        own_words = _QUOTES.sub(" ", head)
        read = _read(own_words)
        if len(read.features) < _LEAST_SAID and len(own_words) != len(head):
            read = _read(head)
    if head is text:
        return read
    rest = feature_of_text(text[_MAX_READ_CHARS:])
    return read._replace(features=(*read.features, rest), exact=(*read.exact, rest))


def _read(text: str) -> Wording:
    if "\n" in text or not text[:1].isalpha():
        text = _ENUMERATION.sub("\n", text).replace("\n", " ; ")
    if "[…" in text:
        text = _LEFT_OUT.sub(" ", text)
    if text[text.find(" ") - 1 : text.find(" ")] == ":":
        text = f'"{text}'  # whom it is for is a name
    read = _read_pieces(text.split())
    said = text
    if len(read.features) <= _LEAST_SAID and len(text) <= _SHORT_CHARS:
        said = ACKNOWLEDGING.sub(" ", said)
    if read.marks & REMINDS:
        said = _REMINDERS.sub(" ", said)
    if read.marks & SPREADS:
        said = in_digits(said)
    return read if said == text else _read_pieces(said.split())


def _read_pieces(pieces: list[str]) -> Wording:
    """Read the pieces between spaces. The loop is the hot path: words first, and nothing is looked at twice."""
    features: dict[int, None] = {}  # a set that keeps its order
    special: list[int] = []
    negated: list[int] = []
    news: list[int] = []
    marks = last = 0
    negating, opening = False, True
    for code in chain.from_iterable(map(known_codes_of, pieces)):
        if code < WORDS:
            if code > FEATURE:
                special.append(code & ~CAPITAL if opening else code)
                if code & PARTICIPLE:
                    marks |= PAST | (REPORTS if last & HAS or last & _I_WILL == COMMITS else SETTLES if last & IS else 0)
                    if last & HAS:
                        news.append(code & FEATURE)
                code &= FEATURE
            features[code] = None
            if negating:
                negated.append(code)
                negating = False
            opening = False
        else:
            marks |= code
            if code & CLAUSE_ENDS:
                negating = False
                opening = opening or code & SENTENCE_ENDS != 0
            elif code & (NEGATES | OPENS):
                negating = negating or code & NEGATES != 0
                opening = False
            if last & _PAIRING:
                marks |= _together(last, code)
        last = code
    if marks & (QUESTION | PLEADS):
        marks |= ASKS
    if marks & MAY and marks & (COMMITS | YOU) and not marks & CANNOT:
        marks |= PLANS  # what somebody can do is a fact, what I or you can do is an offer or a request
    return Wording(tuple(features), frozenset(negated), *_special(special, len(pieces)), frozenset(news), marks)


def _together(last: int, code: int) -> int:
    """What two neighbouring function words tell that none of them tells alone."""
    if code & READY and last & IS:
        return REPORTS
    if (code & AUXILIARY and last & YOU) or (code & YOU and last & AUXILIARY):
        return ASKS
    return OBLIGES | PLANS if code & TO and last & HAS else 0


def _special(codes: Iterable[int], pieces: int) -> tuple[frozenset[int], tuple[int, ...]]:
    """The names, and what is exact, among the words that are not plain."""
    names = {code & FEATURE for code in codes if code & (CAPITAL | QUOTED)}
    exact = dict.fromkeys(code & FEATURE for code in codes if code & EXACT)
    return frozenset(names) if len(names) <= max(2, _MOST_NAMES * pieces) else frozenset(), tuple(exact)
