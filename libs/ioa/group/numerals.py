"""Numbers, however they are written: `8.4k` is 8400, `fourteen thousand` is 14000, `the twentieth` is 20, `9km` is 9 km.

A number has no other words, but many ways to write it. One that fits into a piece without spaces is read by `parts_of`, once for
each piece. What takes several pieces is written in digits by `in_digits`, which is called for texts with such a word only.
"""

from __future__ import annotations

import re
from itertools import pairwise

_UNITS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth"
    " seventeenth eighteenth nineteenth"
).split()
_MAGNITUDES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_SUFFIXES = {"k": 1_000, "M": 1_000_000, "bn": 1_000_000_000}
_ENDINGS = frozenset({"st", "nd", "rd", "th", "x"})
_MONTHS = "january february march april may june july august september october november december".split()

NUMBERS = {
    **{word: number for number, word in enumerate(_UNITS, start=2)},
    **{word: number for number, word in enumerate(_ORDINALS, start=2)},
    **{word: 10 * tens for tens, word in enumerate(_TENS, start=2)},
    **{word[:-1] + "ieth": 10 * tens for tens, word in enumerate(_TENS, start=2)},
    **_MAGNITUDES,
    **dict.fromkeys("twice double doubled doubles doubling couple".split(), 2),
    "zero": 0,
    "triple": 3,
    "dozen": 12,
}
"""Words that are a number. `one` and `first` are too common for that."""

SPREAD = frozenset({*_MAGNITUDES, *_TENS, *(f"{word}s" for word in _MAGNITUDES), "dozen", "half", "quarter", "quarters"})
"""Words that may be a part of a number only."""

_IN_COMPOUNDS = {**NUMBERS, "one": 1, "first": 1}
_SMALL = "|".join(sorted(_IN_COMPOUNDS, key=len, reverse=True))
_COMPOUND = re.compile(rf"\b(?:an?|(?<![\d,.])\d[\d,.]*+|{_SMALL})(?:(?:[ -]|[ -]and[ -])(?:{_SMALL}))+\b", re.IGNORECASE)
_BEFORE = frozenset({*_IN_COMPOUNDS, "a", "an"})
_PARTS_OF_TIME = (
    (re.compile(r"\b(?:an|one|1) hour and a half\b|\b(?:one|1) and a half hours\b", re.IGNORECASE), "90 minutes"),
    (re.compile(r"\bthree[ -]quarters of an hour\b", re.IGNORECASE), "45 minutes"),
    (re.compile(r"\b(?:a )?quarter of an hour\b", re.IGNORECASE), "15 minutes"),
    (re.compile(r"\bhalf(?: an|-an)?[ -]hour\b", re.IGNORECASE), "30 minutes"),
    (re.compile(r"\bhalf a year\b", re.IGNORECASE), "6 months"),
    (re.compile(r"\b(?:two|2) and a half\b", re.IGNORECASE), "2.5"),
    (re.compile(r"\bhalf (?:of )?(?=the\b|our\b|my\b|your\b|their\b|all\b|them\b|these\b|those\b)", re.IGNORECASE), "50 percent "),
    (re.compile(r"\bhalf an?\b", re.IGNORECASE), "0.5"),
)

_UNIT_WORDS = {
    **{unit: unit for unit in "am cm eur gb ghz hz kb kg km kw kwh lb mb mbit mg mhz ml mm mph ms pm pt px tb usd".split()},
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "hrs": "hour",
    "m": "metre",
    "min": "minute",
    "mins": "minute",
    "mi": "mile",
    "in": "inch",
    "l": "litre",
    "s": "seconds",
    "sec": "seconds",
    "secs": "seconds",
    "w": "watt",
}
_WITH_UNIT = re.compile(r"(\d[\d,.]*)([a-zA-Z]+)")
_WITH_WORDS = re.compile(r"(\d[\d,.]*)((?:-[a-z]+)+)")
_RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")
_DAY = re.compile(r"(\d{4})-(0[1-9]|1[0-2])-([0-3]\d)")
_QUARTER = re.compile(r"q([1-4])")
_VERSION = re.compile(r"v(\d+(?:\.\d+)*)")
_DIGIT = re.compile(r"\d")


def parts_of(chunk: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Tell the numbers that a chunk without spaces says, in digits, and the words beside them; None if it says no number."""
    chunk = chunk.strip("'’").rstrip("%")
    lower = chunk.lower()
    if lower in NUMBERS:
        return (str(NUMBERS[lower]),), ()
    if _DIGIT.search(lower):
        return _with_digits(chunk, lower)
    first, *others = lower.split("-")
    if others and first in _IN_COMPOUNDS and (first in NUMBERS or others[0] in _MAGNITUDES):
        return _spelled_out([first, *others])
    return None


def in_digits(text: str) -> str:
    """Write the numbers of a text that take several words in digits."""
    if "half" in text or "Half" in text or "quarter" in text:
        for pattern, digits in _PARTS_OF_TIME:
            text = pattern.sub(digits, text)
    words = [word.strip(".,;:!?()") for word in text.lower().split()]
    # The expression is slow, so it is asked only where a number word follows another.
    follows = (word in _IN_COMPOUNDS and (last in _BEFORE or last[:1].isdigit()) for last, word in pairwise(words))
    return _COMPOUND.sub(_compound, text) if any(follows) else text


def _with_digits(chunk: str, lower: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if found := _WITH_UNIT.fullmatch(chunk):
        number, unit = _plain(found[1]), found[2]
        if unit in _SUFFIXES:
            return (_times(number, _SUFFIXES[unit]),), ()
        if (unit := unit.lower()) in _ENDINGS:
            return (number,), ()
        return ((number,), (_UNIT_WORDS[unit],)) if unit in _UNIT_WORDS else ((lower,), ())
    if found := _WITH_WORDS.fullmatch(lower):
        return (_plain(found[1]),), tuple(found[2][1:].split("-"))
    if (found := _RANGE.fullmatch(lower)) and int(found[1]) < int(found[2]):
        return (found[1], found[2]), ()
    if found := _DAY.fullmatch(lower):
        return (found[1], str(int(found[3]))), (_MONTHS[int(found[2]) - 1],)
    if found := _QUARTER.fullmatch(lower):
        return ((), ("first", "quarter")) if found[1] == "1" else ((found[1],), ("quarter",))
    if found := _VERSION.fullmatch(lower):
        return (found[1],), ("version",)
    return (_plain(lower),), ()


def _plain(number: str) -> str:
    """Leave out what says nothing: separators of thousands, and zeros behind the point or the hour."""
    return re.sub(r"(?:\.0+|(?<=^\d):00|(?<=^\d\d):00)$", "", number.replace(",", "").rstrip("."))


def _times(number: str, magnitude: int) -> str:
    try:
        product = float(number) * magnitude
    except ValueError:
        return number
    return str(int(product)) if product.is_integer() else str(product)


def _spelled_out(words: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read `forty-two`, or `five-thousand-row`, where a word follows."""
    end = next((at for at, word in enumerate(words) if word not in _IN_COMPOUNDS), len(words))
    value = _value_of(words[:end])
    numbers = (str(value),) if value is not None else tuple(str(_IN_COMPOUNDS[word]) for word in words[:end])
    return numbers, tuple(words[end:])


def _compound(found: re.Match[str]) -> str:
    words = [word for word in re.split(r"[ -]", found[0].lower()) if word != "and"]
    if words[0] in ("a", "an"):
        words[0] = "one"
    if words[0][0].isdigit():
        number = _plain(words[0])
        magnitudes = [_MAGNITUDES[word] for word in words[1:] if word in _MAGNITUDES]
        return _times(number, magnitudes[0]) if len(words) == 2 and magnitudes else found[0]
    value = _value_of(words)
    return found[0] if value is None else str(value)


def _value_of(words: list[str]) -> int | None:
    """Add up number words as one reads them out; None if they are several numbers."""
    total = group = 0
    for word in words:
        number = _IN_COMPOUNDS[word]
        if number in (100, 12) and word != "twelve":
            group = max(group, 1) * number
        elif number >= 1_000:
            total, group = total + max(group, 1) * number, 0
        elif group == 0 or (group % 100 == 0 and number < 100) or (group % 10 == 0 and 0 < number < 10 and group % 100):
            group += number
        else:
            return None
    return total + group
