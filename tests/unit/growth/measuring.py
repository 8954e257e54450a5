"""Whether reading something takes longer than its length explains, told by CPU time, and by what plain text takes beside it.

No time is asserted by itself: a slow or busy machine takes longer for both. What is judged has two parts. Something **grows** if
four times of it take far more than four times as long, and all of it several times as long as plain text does: what grows and costs
nothing at its largest harms nobody. And something is **dear** if it takes very many times as long as plain text of its size,
however it grows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from tests.unit.growth.textures import PLAIN, text_of
from tests.unit.patterns.bounding import TakesForEverError, bounded

STEEP = 8.0
"""What takes four times the text takes four times the time if it is linear, and sixteen times if it is quadratic."""
MATTERS, DEAR = 15.0, 600.0
"""How many times as long as plain text of its size something takes that grows, and that is dear by itself."""
_LEAST_PLAIN_BYTES = 16_384
"""Less plain text than this takes no time that can be measured well, and a dear one of few bytes harms nobody."""
_STEPS = (16, 4, 1)
_CPU_SECONDS = 2.0
_REPEATS, _CONFIRMATIONS, _CONFIRMED_SECONDS = 3, 3, 0.3
"""How often each is read for one measurement, and how many of these agree at least: as many as so much CPU time holds, since what
takes a few ms is disturbed by whoever shares the processor's caches."""

_PLAIN_REPEATS = 3
"""How often plain text is read beside each: it takes a tenth of a ms, and the first time behind something else the longest."""

_salts = count(1)

Making = Callable[[int, int], object]
"""Makes what is read of a size; another one for another salt."""
Reading = Callable[[Any], object]


class Slow(NamedTuple):
    """Something that takes longer than it should: by how many times plain text of its size, and what four times of it take."""

    times_plain: float
    growth: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.times_plain:,.0f} times plain text, {self.growth:.1f} times for four times of it, {self.seconds:.3f} s"


def seconds_of(read: Reading, make: Making, size: int, repeats: int = 1) -> float:
    """The least CPU time of some readings, each of another text: what others do on the machine does not count.

    A refusal is an answer as well, and may take long.
    """
    least = float("inf")
    for _ in range(repeats):
        given = make(size, next(_salts))
        began = time.thread_time()
        with suppress(Exception):  # what comes of it is tried elsewhere
            read(given)
        least = min(least, time.thread_time() - began)
    return least


def plain_seconds(size: int, repeats: int = 7) -> float:
    """What it takes now to read so many bytes of plain text, word by word."""
    return seconds_of(lambda text: " ".join(text.casefold().split()), lambda size, salt: text_of(PLAIN, size, salt), size, repeats)


_least_plain: dict[int, float] = {}


def times_plain(seconds: float, size: int) -> float:
    """How many times as long as plain text of the same size something has taken.

    Plain text is read anew each time, and the fastest of all readings counts: one that was disturbed once would make all that is
    compared with it look fast.
    """
    at_least = max(size, _LEAST_PLAIN_BYTES)
    if (least := _least_plain.get(at_least)) is None:
        least = plain_seconds(at_least)
    _least_plain[at_least] = min(plain_seconds(at_least, 1), least)
    return seconds / _least_plain[at_least]


def slow(read: Reading, make: Making, most: int) -> Slow | None:
    """Tell whether reading grows too fast up to a size, or is dear there; None if it does neither.

    It is measured from a small size on, so that what would take minutes is found when it takes a tenth of a second.
    """
    try:
        with bounded(_CPU_SECONDS):
            for step in _STEPS:
                size = most // step
                if times_plain(seconds_of(read, make, size), size) < (MATTERS if step == 1 else DEAR):
                    continue  # what has a bound grows up to it, and is judged where it ends
                if (found := _confirmed(read, make, size)) is not None:
                    return found
    except TakesForEverError:
        return Slow(float("inf"), float("inf"), _CPU_SECONDS)
    return None


def _confirmed(read: Reading, make: Making, size: int) -> Slow | None:
    """Measure again and again: what is slow is so each time, and what was disturbed is not.

    Each is measured beside the others: who shares the processor's caches slows down what is large more than what is small.
    """
    found: Slow | None = None
    until = time.thread_time() + _CONFIRMED_SECONDS
    for number in count():
        if number >= _CONFIRMATIONS and time.thread_time() > until:
            break
        seconds = small = plain = float("inf")
        for _ in range(_REPEATS):
            small = min(small, seconds_of(read, make, size // 4))
            seconds = min(seconds, seconds_of(read, make, size))
            plain = min(plain, plain_seconds(max(size, _LEAST_PLAIN_BYTES), _PLAIN_REPEATS))
        times, growth = seconds / plain, seconds / max(small, 1e-7)
        if times < DEAR and (times < MATTERS or growth < STEEP):
            return None
        one = Slow(times, growth, seconds)
        found = one if found is None else min(found, one)
    return found
