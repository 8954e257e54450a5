"""Trying again until what is needed is there."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.errors import ConflictError, RateLimitedError, UnavailableError
from ioa.retry import pauses, until_available


def _unheard(error: UnavailableError) -> None:
    """Take no notice of a failure."""


async def test_what_is_unavailable_is_asked_again() -> None:
    """A request is repeated until it is answered."""
    answers = iter([UnavailableError("not yet"), "answer"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, UnavailableError):
            raise answer
        return str(answer)

    failures = list[UnavailableError]()
    assert await until_available(ask, failures.append) == "answer"
    assert [failure.message for failure in failures] == ["not yet"]


async def test_nobody_comes_back_before_he_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes earlier is refused again, and takes what there is for those who wait."""
    answers, paused = iter([RateLimitedError("too often", retry_after=timedelta(seconds=7)), None]), list[float]()

    async def ask() -> None:
        if (refused := next(answers)) is not None:
            raise refused

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    await until_available(ask, _unheard)
    assert paused == [7.0]


async def test_a_refusal_is_an_answer() -> None:
    """Any other error is raised at once."""
    asked = []

    async def ask() -> None:
        asked.append(1)
        raise ConflictError("taken")

    with pytest.raises(ConflictError):
        await until_available(ask, _unheard)
    assert asked == [1]


async def test_patience_ends_when_it_is_cancelled() -> None:
    """Whoever cannot wait cancels."""
    asked = asyncio.Event()

    async def ask() -> None:
        asked.set()
        raise UnavailableError("never")

    waiting = asyncio.create_task(until_available(ask, _unheard))
    await asked.wait()
    waiting.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled()


def test_pauses_double_up_to_a_bound() -> None:
    """Without the spread, each pause is twice as long as the one before."""
    assert list(islice(pauses(0.1, 1.0, lambda: 0.5), 6)) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_pauses_are_spread(chances: list[float]) -> None:
    """No pause is below half of its mean or above one and a half, so that nobody hammers and nobody is forgotten."""
    chance = iter(chances)
    for number, pause in enumerate(islice(pauses(0.1, 2.0, lambda: next(chance)), len(chances))):
        mean = min(0.1 * 2**number, 2.0)
        assert 0.5 * mean <= pause <= 1.5 * mean
