"""Cutting texts to size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ioa.agent.outbox import shortened


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.integers(8, 60))
def test_a_shortened_text_fits(text: str, max_bytes: int) -> None:
    """Any text can travel within its bound, and one that fits is left as it is, but for the character zero."""
    short = shortened(text, max_bytes)

    assert len(short.encode()) <= max_bytes
    assert short == text or len(text.encode("utf-8", "replace")) > max_bytes


def test_half_a_character_is_replaced() -> None:
    """What UTF-8 cannot encode becomes a question mark, and the character zero, which nobody takes, a replacement character."""
    assert shortened("caf\udce9 \0") == "caf? \ufffd"
