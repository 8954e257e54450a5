"""What a group remembers of a text: some thirty bytes, no prose.

Every entry of the log carries the sketches of the last texts, and every message is compared with all of them. So a sketch is one
string, in which a byte stands for a word:

    marks (1) · who said it (1) · turn, or place of the task (2) · poles (2) · number of words (1) · of negated words (1)
    words, in the order of the text (1 each) · negated words (1 each) · numbers and identifiers (2 each) · for a task: its input (2)

Of a long text the words are a sample, those with the lowest features; in place of the numbers and identifiers stand a digest of
them (2) and the highest feature of the sample (2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ioa.group.lexicon import ASKS, CORRECTS, MAY_CORRECT, NAMES_QUESTION, PAST, PLANS, POLES_FROM
from ioa.group.wording import Wording

Sketch = str
"""Each character stands for a byte."""

MAX_WORDS = 32
"""What a sketch holds at most; of a longer text a fixed sample."""
_MAX_EXACT = 8

ASKED, ASKED_WHAT, CORRECTED, PLANNED, IS_PAST, IS_SAMPLE, OF_TASK, OF_RESULT = (1 << bit for bit in range(8))
_MARKS = ((ASKS, ASKED), (NAMES_QUESTION, ASKED_WHAT), (CORRECTS, CORRECTED), (PLANS, PLANNED), (PAST, IS_PAST))
_IMPLIED = {OF_TASK: ASKED | PLANNED, OF_RESULT: IS_PAST}
"""A task is a request, and a result is news no more."""
_WORDS_COUNTED_AT, _WORDS_FROM = 6, 8
MAY_HAVE_CORRECTED = MAY_CORRECT >> POLES_FROM
_ALL_POLES = (MAY_HAVE_CORRECTED << 1) - 1


class Remembered(NamedTuple):
    """A sketch taken apart. `place` is the turn's last two bytes, or the task's place among the group's tasks."""

    marks: int
    who: int
    place: int
    poles: int
    words: bytes
    negated: bytes
    exact: frozenset[int]
    digest: int
    limit: int
    uses: int


def sketch_of(wording: Wording, who: int, place: int, *, kind: int = 0, uses: Iterable[str] = ()) -> Sketch:
    """Keep of a text what later ones are compared with."""
    marks = kind | _IMPLIED.get(kind, 0)
    for mark, kept in _MARKS:
        if wording.marks & mark:
            marks |= kept
    features: Iterable[int] = wording.features
    negated: Iterable[int] = wording.negated
    if len(wording.features) > MAX_WORDS or len(wording.exact) > _MAX_EXACT:
        marks |= IS_SAMPLE
        features = sorted(wording.features)[:MAX_WORDS]
        negated = (feature for feature in negated if feature <= features[-1])
        tail = _two(digest_of(wording.exact)) + _two(short(features[-1]))
    else:
        tail = b"".join(_two(short(feature)) for feature in wording.exact)
    if kind & OF_TASK:
        tail += _two(digest_of_uses(uses))
    said, denied = words_of(features), words_of(negated)
    header = bytes((marks, who)) + _two(place & 0xFFFF) + _two(poles_of(wording)) + bytes((len(said), len(denied)))
    return (header + said + denied + tail).decode("latin-1")


def place_in(sketch: Sketch) -> int:
    """The turn or the place of the task that a sketch bears."""
    return ord(sketch[2]) << 8 | ord(sketch[3])


def is_of_task(sketch: Sketch) -> bool:
    """Whether a sketch bears the place of a task, since it is of that task or of its result."""
    return bool(ord(sketch[0]) & (OF_TASK | OF_RESULT))


def with_place(sketch: Sketch, place: int) -> Sketch:
    """The same sketch of a task that has another place now."""
    return f"{sketch[:2]}{chr(place >> 8)}{chr(place & 0xFF)}{sketch[4:]}"


def packed(sketch: Sketch) -> bytes:
    """The bytes that a sketch stands for."""
    return sketch.encode("latin-1")


def alike(said: bytes, sketches: Sequence[Sketch]) -> Iterator[Remembered]:
    """Open, the latest first, those sketches at least half of whose words are among `said`.

    This tells nearly all messages apart, and is done ten times for each; so it calls no function of ours before.
    """
    for sketch in reversed(sketches):
        old = sketch.encode("latin-1")
        known = old[_WORDS_FROM : _WORDS_FROM + old[_WORDS_COUNTED_AT]]
        if known and 2 * len(known.translate(None, said)) <= len(known):
            yield opened(old)


def opened(sketch: bytes) -> Remembered:
    """Take a sketch apart."""
    end_of_words = _WORDS_FROM + sketch[_WORDS_COUNTED_AT]
    end_of_negated = end_of_words + sketch[7]
    marks = sketch[0]
    tail = [int.from_bytes(sketch[at : at + 2], "big") for at in range(end_of_negated, len(sketch), 2)]
    uses = tail.pop() if marks & OF_TASK else 0
    digest, limit = tail if marks & IS_SAMPLE else (0, 0)
    return Remembered(
        marks=marks,
        who=sketch[1],
        place=int.from_bytes(sketch[2:4], "big"),
        poles=int.from_bytes(sketch[4:6], "big"),
        words=sketch[_WORDS_FROM:end_of_words],
        negated=sketch[end_of_words:end_of_negated],
        exact=frozenset() if marks & IS_SAMPLE else frozenset(tail),
        digest=digest,
        limit=limit,
        uses=uses,
    )


def words_of(features: Iterable[int]) -> bytes:
    """What a sketch keeps of each word."""
    return bytes([feature & 0xFF for feature in features])


def short(feature: int) -> int:
    """What a sketch keeps of a number or an identifier; as large as it is among others."""
    return feature >> 16


def poles_of(wording: Wording) -> int:
    """Which words of `vocabulary.POLES` a text has."""
    return wording.marks >> POLES_FROM & _ALL_POLES


def digest_of(features: Iterable[int]) -> int:
    """Two bytes that tell one set of features from another."""
    digest = 0
    for feature in sorted(features):
        digest = (digest * 31 + feature + 1) & 0xFFFF_FFFF
    return digest >> 16


def digest_of_uses(uses: Iterable[str]) -> int:
    """Two bytes that tell one set of task ids from another."""
    digest = 0
    for use in sorted(uses):
        for byte in use.encode():
            digest = (digest * 31 + byte + 1) & 0xFFFF
    return digest


def _two(number: int) -> bytes:
    return number.to_bytes(2, "big")
