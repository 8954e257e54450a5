"""Giving up what may never end, by a timer of CPU time: a match looks at it now and then, and a busy machine changes nothing."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TakesForEverError(BaseException):
    """Raised inside of a match, which looks for signals now and then. Nothing that is tried catches it as an error of its own."""


@contextmanager
def bounded(cpu_seconds: float) -> Iterator[None]:
    """Interrupt what runs on the main thread once it has used up so much CPU time.

    No garbage is collected meanwhile: whoever watches collections (`gc.callbacks`) would be interrupted, and nobody else.

    Raises:
        TakesForEverError: It has.
    """

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TakesForEverError

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
