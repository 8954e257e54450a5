"""Trying again: how long to wait in between.

What a queue redelivers waits as its message says (`adapters.nats.queues`), and who looks again at what may have changed has a
rhythm of its own. Everything else that is tried again by itself takes its pauses from here.

Pauses double up to a bound and are spread at random, so that those who lost the same server do not all come back in the same
instant (M. Brooker, "Exponential Backoff And Jitter", AWS, 2015). Nothing here gives up: who cannot wait cancels, or stops taking
pauses.
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
    """Yield seconds to wait before each further attempt, without end.

    Args:
        first: Mean of the first pause, in seconds. Each mean is twice the one before.
        longest: Mean of the longest pause, in seconds.
        chance: Gives numbers from 0 to 1; each pause is from half to one and a half of its mean.
    """
    mean = first
    while True:
        yield mean * (0.5 + chance())
        mean = min(mean * 2, longest)


async def until_available(ask: Callable[[], Awaitable[T]], on_failure: Callable[[UnavailableError], None]) -> T:
    """Repeat an idempotent request until what it needs is there.

    Args:
        ask: Makes the request. Any error but `UnavailableError` is an answer and is raised. Where the error says when a retry is
            worth its while, none comes before.
        on_failure: Told of each attempt that failed, before the pause.
    """
    pause = pauses(_FIRST_SECONDS, _LONGEST_SECONDS)
    while True:
        try:
            return await ask()
        except UnavailableError as error:
            on_failure(error)
            told = error.retry_after
        await asyncio.sleep(max(next(pause), 0.0 if told is None else told.total_seconds()))
