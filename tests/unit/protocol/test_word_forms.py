"""Forms of words: what has one, compared with the plainest reading of its signs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.protocol.word_forms import is_held, looks_like


@pytest.mark.parametrize(
    ("form", "has_it", "has_not"),
    [
        ("bye", "BYE", "bye!"),
        ("*bye*", "well, bye then", "by"),
        ("room #?", "Room 1b", "room b1"),
        ("*.*", "a.b\nc", "a b"),
        ("[a]+", "[A]+", "aa"),
        ("*", "", None),
        ("?", "\n", ""),
    ],
)
def test_signs_stand_for_what_they_are_said_to(form: str, has_it: str, has_not: str | None) -> None:
    """All others stand for themselves, in either case."""
    assert looks_like(has_it, form)
    assert has_not is None or not looks_like(has_not, form)


@given(st.text("aAıßſ?*.", max_size=12), st.text("aAıßſ?*.", min_size=1, max_size=4))
def test_words_are_found_within_others_sign_by_sign_in_either_case(text: str, word: str) -> None:
    """As `in` finds them."""
    assert is_held(word, ["", text.casefold()]) == (word.casefold() in text.casefold())
