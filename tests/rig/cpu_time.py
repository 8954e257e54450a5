"""CPU time of a call: a limit, and whether it grows faster than the input."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_STEEP = 12.0
"""Maximum ratio of CPU time for four times the input: 4 if linear, up to 10 beyond the caches, 16 if quadratic."""
_MEASURABLE_SECONDS = 0.002
_CPU_SECONDS = 2.5
_REPEATS, _CONFIRMATIONS = 3, 5


class CpuTimeExceededError(BaseException):
    """The CPU time of `bounded` is used up. No `except Exception` catches it."""


@contextmanager
def bounded(cpu_seconds: float) -> Iterator[None]:
    """Interrupt the main thread when it has used this CPU time. Garbage collection is disabled meanwhile.

    Raises:
        CpuTimeExceededError: The time is used up.
    """

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise CpuTimeExceededError

    collected = gc.isenabled()
    gc.disable()
    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if collected:
            gc.enable()


def cpu_seconds(read: Callable[[T], object], given: T, repeats: int = _REPEATS) -> float:
    """Return the least CPU time of several calls. An error is a result."""
    least = float("inf")
    for _ in range(repeats):
        began = time.thread_time()
        with suppress(Exception):
            read(given)
        least = min(least, time.thread_time() - began)
    return least


def is_linear(read: Callable[[T], object], make: Callable[[int], T], size: int) -> bool:
    """Whether four times the input takes at most about four times the CPU time. A single disturbed measurement does not count.

    Args:
        read: The function under test.
        make: Makes the input of a size.
        size: The larger one of the two sizes.
    """
    small, large = make(size // 4), make(size)
    try:
        with bounded(_CPU_SECONDS):
            for _ in range(_CONFIRMATIONS):
                taken = cpu_seconds(read, large)
                if taken < _MEASURABLE_SECONDS or taken <= _STEEP * cpu_seconds(read, small):
                    return True
    except CpuTimeExceededError:
        pass
    return False
