"""Sketches: what they hold, how large they are, and that the sample of a long text still tells texts apart."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.group.repetition import repeated
from ioa.group.sketch import ASKED, IS_SAMPLE, MAX_WORDS, OF_TASK, digest_of_uses, opened, packed, sketch_of
from ioa.group.wording import wording_of

_CHANCE = random.Random(7)
_WORDS = ["".join(_CHANCE.choices("bdfglmnprstv", k=1) + _CHANCE.choices("aeiou", k=1)) for _ in range(40)]


def _long_text(seed: int, words: int = 400) -> str:
    chance = random.Random(seed)
    return " ".join("".join(chance.choices(_WORDS, k=4)) for _ in range(words))


def _repeats(text: str, earlier: str) -> bool:
    return repeated(wording_of(text), 1, (sketch_of(wording_of(earlier), 0, 1),), lambda _: ()) is not None


def test_a_sketch_tells_who_said_it_when_and_how() -> None:
    """What is packed is what is opened; of a turn the last two bytes are kept."""
    sketch = opened(packed(sketch_of(wording_of("Who draws 3 charts?"), 5, 70_000, kind=OF_TASK, uses=("t1-1", "t1-2"))))
    assert (sketch.who, sketch.place, len(sketch.words), len(sketch.exact)) == (5, 70_000 % 65_536, 3, 1)
    assert (sketch.marks & (ASKED | OF_TASK), sketch.uses) == (ASKED | OF_TASK, digest_of_uses(("t1-2", "t1-1")))


@given(st.text(max_size=3_000))
def test_no_text_has_a_large_sketch(text: str) -> None:
    """Whatever is said, its sketch is small, can be opened, and is one character for each byte."""
    sketch = sketch_of(wording_of(text), 63, 2**40)
    assert len(sketch) <= 100 and len(opened(packed(sketch)).words) <= MAX_WORDS


@pytest.mark.parametrize(
    ("change", "is_repetition"),
    [("", True), (" It cost 17 euros.", False), (" " + _long_text(99), False)],
    ids=["unchanged", "another-number", "twice-as-long"],
)
def test_a_long_text_is_known_by_a_sample(change: str, is_repetition: bool) -> None:
    """The same again is a repetition; what adds a number or as much again is none."""
    text = _long_text(1)
    assert opened(packed(sketch_of(wording_of(text), 0, 1))).marks & IS_SAMPLE
    assert _repeats(text + change, text) is is_repetition


def test_long_texts_are_told_apart() -> None:
    """No two of many long texts are taken for the same, though a sketch has but a byte for each word."""
    texts = [_long_text(seed) for seed in range(2, 22)]
    assert [(one, other) for one in texts for other in texts if one != other and _repeats(one, other)] == []
