"""Texts that make a regular expression slow, derived from the expression itself.

What is slow beyond measure is a part that may be repeated and that is tried anew at each position, or in several ways. So each
part of an expression, and each of its characters, is repeated, behind what the expression wants in front of it, and is ended by
something that the expression wants nowhere. What an expression begins with is repeated too, parted by a sign, since a sign may go
on with what has begun and let it begin again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_GENERIC = (
    "a.",
    "1.",
    "1,",
    "e.g. ",
    "a-",
    "a/",
    "x, y, ",
    "and ",
    " ",
    "\n",
    "1",
    '"',
    "'",
    "<",
    "(",
    "[",
    "{",
    "[(",
    "\\",
    "é",
    "字",
    "a",
    "A ",
)
_ALPHABET = "a0 ._-,:;/!?\"'()[]{}<>\n\\@=ÀX字"
_CATEGORIES = {
    kinds.CATEGORY_DIGIT: "09",
    kinds.CATEGORY_WORD: "a0_",
    kinds.CATEGORY_SPACE: " \n",
    kinds.CATEGORY_NOT_DIGIT: "a ",
    kinds.CATEGORY_NOT_WORD: " .",
    kinds.CATEGORY_NOT_SPACE: "a.",
}
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
_TAILS = ("", "\x01")
_MOST_UNITS, _MOST_BEGINNINGS = 120, 24
_SIGNS = "-._ "
_WINDOW = 4
_SEED = 12


@dataclass(frozen=True)
class Attack:
    """A text of any length: `head`, then `unit` again and again, then `tail`."""

    head: str
    unit: str
    tail: str

    def text(self, chars: int) -> str:
        """The text of so many characters, but for the head and the tail."""
        return self.head + self.unit * (chars // len(self.unit)) + self.tail


def attacks_on(pattern: re.Pattern[str]) -> Iterator[Attack]:
    """Derive attacks from an expression; the same ones each time."""
    parsed = parser.parse(pattern.pattern, pattern.flags)
    found = dict.fromkeys(("", unit) for unit in _GENERIC)
    units = list(_units(parsed, ""))
    letters = sorted({letter for _, unit in units for letter in unit})
    chosen = random.Random(_SEED)
    pairs = ["".join(pair) for pair in product(letters, repeat=2)]
    for head, unit in (*units[:_MOST_UNITS], *chosen.sample(units, min(len(units), _MOST_UNITS))):
        found[head, unit] = None
        found["", unit] = None
    beginnings = sorted({head for head, _ in units if head}, key=lambda head: (len(head), head))[:_MOST_BEGINNINGS]
    for beginning, sign in product(beginnings, _SIGNS):
        found["", beginning + sign] = None
    for unit in (*letters, *chosen.sample(pairs, min(len(pairs), _MOST_UNITS))):
        found["", unit] = None
    for (head, unit), tail in product(found, _TAILS):
        yield Attack(head, unit, tail)


def _units(parsed: Any, head: str) -> Iterator[tuple[str, str]]:
    """Yield what may be worth repeating, the parts that the expression itself repeats first, with what has to stand before it."""
    items = list(parsed)
    before = [head]
    for item in items:
        before.append(before[-1] + _samples_of(item)[0])
    for item, ahead in zip(items, before, strict=False):
        for inner in _inner(item):
            if item[0] in _REPEATS:
                yield from ((ahead, sample) for sample in (*_samples(inner), _mixed(inner)) if sample)
            yield from _units(inner, ahead)
    for first, ahead in zip(range(len(items)), before, strict=False):
        for last in range(first + 1, min(len(items), first + _WINDOW) + 1):
            yield from ((ahead, sample) for sample in _samples(items[first:last]) if sample)


def _inner(item: tuple[Any, Any]) -> Sequence[Any]:
    kind, given = item
    if kind in _REPEATS:
        return [given[2]]
    if kind is kinds.SUBPATTERN:
        return [given[3]]
    if kind is kinds.BRANCH:
        return list(given[1])
    if kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        return [given[1]]
    return [given] if kind is kinds.ATOMIC_GROUP else []


def _samples(items: Any) -> list[str]:
    """A few texts that a sequence matches, as far as its look-arounds allow."""
    each = [_samples_of(item) for item in items]
    return list(dict.fromkeys("".join(samples[number % len(samples)] for samples in each) for number in range(4)))


def _mixed(items: Any) -> str:
    r"""All characters of a class that is repeated, side by side: what may end between them, as by `\b`, may end anywhere."""
    return "".join(_members(items[0][1])) if len(items) == 1 and items[0][0] is kinds.IN else ""


def _samples_of(item: tuple[Any, Any]) -> list[str]:
    kind, given = item
    if kind is kinds.LITERAL:
        return [chr(given)]
    if kind is kinds.NOT_LITERAL:
        return [letter for letter in _ALPHABET if ord(letter) != given][:4]
    if kind is kinds.ANY:
        return ["a", " ", "."]
    if kind is kinds.IN:
        return _members(given)
    if kind in _REPEATS:
        least, _, body = given
        return [sample * max(1, least) for sample in _samples(body)]
    if kind is kinds.BRANCH:
        return [sample for branch in given[1] for sample in _samples(branch)[:2]][:8]
    if kind is kinds.SUBPATTERN:
        return _samples(given[3])
    return _samples(given) if kind is kinds.ATOMIC_GROUP else [""]


def _members(given: Sequence[tuple[Any, Any]]) -> list[str]:
    """Some characters of a class: what stands in it, or of one that is negated, what does not."""
    named: list[str] = []
    for kind, what in given:
        if kind is kinds.LITERAL:
            named.append(chr(what))
        elif kind is kinds.RANGE:
            named += [chr(what[0]), chr(what[1])]
        elif kind is kinds.CATEGORY:
            named += _CATEGORIES[what]
    if given[0][0] is not kinds.NEGATE:
        return named
    return [letter for letter in _ALPHABET if letter not in named] or ["a"]
