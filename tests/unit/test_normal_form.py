"""Texts in a normal form are what Unicode says, but where a word is longer than any is."""

from __future__ import annotations

from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.normal_form import in_normal_form

Form = Literal["NFC", "NFKC"]


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(st.text(max_size=256))
def test_a_text_of_usual_words_is_in_its_form(form: Form, text: str) -> None:
    """Also of several words, with any space between them."""
    for whole in (text, f"{text} {text}\u00a0x\u0301"):
        assert in_normal_form(form, whole) == normalize(form, whole)


def test_a_very_long_word_comes_out_alike_wherever_it_stands() -> None:
    """It is cut from its own beginning on."""
    word = "e\u0301\u0316" * 1_000
    alone = in_normal_form("NFC", word)
    assert in_normal_form("NFC", f"in  between {word} stands") == f"in  between {alone} stands"
    assert alone.startswith(normalize("NFC", word[:255]))


@pytest.mark.parametrize("letter", ["\ufdfa", "\u3300", "\u0390"])
def test_a_text_that_would_become_much_longer_stays_as_it_was_written(letter: str) -> None:
    """Of one letter eighteen may be made, and all that follows would be read of those; one such letter is in its form."""
    assert in_normal_form("NFKC", letter) == normalize("NFKC", letter)
    text = letter * 100_000
    assert len(in_normal_form("NFKC", text)) <= 2 * len(text) + 10_000
    assert in_normal_form("NFKC", f"{letter} {'agreed ' * 9}") == normalize("NFKC", f"{letter} {'agreed ' * 9}")
