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


@given(st.text("ab1", max_size=10), st.text("ab*?#", max_size=8))
def test_what_is_found_between_two_stars_is_all_that_has_to_be_looked_at(text: str, form: str) -> None:
    """To go back behind a star would find nothing more."""
    assert looks_like(text, form) == _has(text, form)


@given(st.text("aAıßſ?*.", max_size=12), st.text("aAıßſ?*.", min_size=1, max_size=4))
def test_words_are_found_within_others_sign_by_sign_in_either_case(text: str, word: str) -> None:
    """As `in` finds them."""
    assert is_held(word, ["", text.casefold()]) == (word.casefold() in text.casefold())


@given(st.text("ab", max_size=30), st.text("ab", min_size=1, max_size=8))
def test_words_that_begin_as_they_end_are_found_wherever_they_stand(text: str, word: str) -> None:
    """What was read of a try that failed may be the beginning of the word."""
    assert is_held(word, [text]) == (word in text) == looks_like(text, f"*{word}*")


def _has(text: str, form: str) -> bool:
    if not form:
        return not text
    if form[0] == "*":
        return any(_has(text[at:], form[1:]) for at in range(len(text) + 1))
    fits = bool(text) and (form[0] == "?" or text[0] == form[0] or (form[0] == "#" and text[0].isdigit()))
    return fits and _has(text[1:], form[1:])
