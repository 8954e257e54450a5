"""Retries with exponential backoff.

Pauses double up to a maximum and have jitter, so that the clients of a lost server do not all reconnect at the same instant
(M. Brooker, "Exponential Backoff And Jitter", AWS, 2015). The number of attempts is not limited; the caller cancels.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from ioa.errors import UnavailableError

T = TypeVar("T")

_FIRST_SECONDS, _LONGEST_SECONDS = 0.1, 2.0


def pauses(first: float, longest: float, chance: Callable[[], float] = random.random) -> Iterator[float]:
    """Yield the seconds to wait before each further attempt, without end.

    Args:
        first: Mean of the first pause, in seconds. Each mean is twice the previous one.
        longest: Mean of the longest pause, in seconds.
        chance: Returns numbers from 0 to 1; each pause is 0.5 to 1.5 times its mean.
    """
    mean = first
    while True:
        yield mean * (0.5 + chance())
        mean = min(mean * 2, longest)


async def until_available(ask: Callable[[], Awaitable[T]], on_failure: Callable[[UnavailableError], None]) -> T:
    """Repeat an idempotent request until it succeeds, or fails with another error than `UnavailableError`.

    Args:
        ask: Makes the request. The `retry_after` of its error is the shortest pause.
        on_failure: Called with the error of each failed attempt, before the pause.
    """
    pause = pauses(_FIRST_SECONDS, _LONGEST_SECONDS)
    while True:
        try:
            return await ask()
        except UnavailableError as error:
            on_failure(error)
            retry_after = error.retry_after
        await asyncio.sleep(max(next(pause), 0.0 if retry_after is None else retry_after.total_seconds()))
