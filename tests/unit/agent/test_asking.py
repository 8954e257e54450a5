"""Asking again, and cutting texts to size."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.agent.asking import until_answered
from ioa.agent.outbox import shortened
from ioa.errors import ConflictError, UnavailableError


async def test_what_is_unavailable_is_asked_again() -> None:
    """A request is repeated until it is answered."""
    answers = iter([UnavailableError("not yet"), "answer"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, UnavailableError):
            raise answer
        return str(answer)

    assert await until_answered(ask) == "answer"


async def test_a_refusal_is_an_answer() -> None:
    """Any other error is raised at once."""
    asked = []

    async def ask() -> None:
        asked.append(1)
        raise ConflictError("taken")

    with pytest.raises(ConflictError):
        await until_answered(ask)
    assert asked == [1]


async def test_patience_ends_when_it_is_cancelled() -> None:
    """Whoever cannot wait cancels."""
    asked = asyncio.Event()

    async def ask() -> None:
        asked.set()
        raise UnavailableError("never")

    waiting = asyncio.create_task(until_answered(ask))
    await asked.wait()
    waiting.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.integers(8, 60))
def test_a_shortened_text_fits(text: str, max_bytes: int) -> None:
    """Any text can travel within its bound, and one that fits is left as it is, but for the character zero."""
    short = shortened(text, max_bytes)

    assert len(short.encode()) <= max_bytes
    assert short == text or len(text.encode("utf-8", "replace")) > max_bytes


def test_half_a_character_is_replaced() -> None:
    """What UTF-8 cannot encode becomes a question mark, and the character zero, which nobody takes, a replacement character."""
    assert shortened("caf\udce9 \0") == "caf? \ufffd"
