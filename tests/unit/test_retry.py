"""Retries with backoff."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import islice

import pytest

from ioa.errors import ConflictError, RateLimitedError, UnavailableError
from ioa.retry import pauses, until_available


def _unheard(error: UnavailableError) -> None:
    """Ignore a failure."""


async def test_unavailable_request_is_retried() -> None:
    """The caller receives each failure."""
    answers = iter([UnavailableError("not yet"), "answer"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, UnavailableError):
            raise answer
        return str(answer)

    failures = list[UnavailableError]()
    assert await until_available(ask, failures.append) == "answer"
    assert [failure.message for failure in failures] == ["not yet"]


async def test_retry_waits_for_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier retry would be rejected."""
    answers, paused = iter([RateLimitedError("too often", retry_after=timedelta(seconds=7)), None]), list[float]()

    async def ask() -> None:
        if (refused := next(answers)) is not None:
            raise refused

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    await until_available(ask, _unheard)
    assert paused == [7.0]


async def test_other_error_is_raised_at_once() -> None:
    """Without a retry."""
    asked = []

    async def ask() -> None:
        asked.append(1)
        raise ConflictError("taken")

    with pytest.raises(ConflictError):
        await until_available(ask, _unheard)
    assert asked == [1]


def test_pauses_double_up_to_a_maximum_with_jitter() -> None:
    """From half of the mean to one and a half."""
    assert list(islice(pauses(0.1, 1.0, lambda: 0.5), 6)) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert [next(pauses(1.0, 1.0, chance)) for chance in (lambda: 0.0, lambda: 1.0)] == [0.5, 1.5]
