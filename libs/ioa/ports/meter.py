"""Counting what decisions and tasks cost while they are made, so that the group's budget can be held, and telling who made them.

What was thought on the way is told with it, to the agent's own client alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ioa.protocol.decisions import DecidedBy
from ioa.protocol.model_calls import MAX_CALLS, ModelCall
from ioa.protocol.usage import NO_OVERHEAD, NOTHING, Overhead, Usage


class Metered(NamedTuple):
    """What a meter has counted.

    Attributes:
        usage: All of it.
        overhead: What of it came to nothing by itself; None if nothing did.
        calls: What models were asked, in order; of very many the last.
    """

    usage: Usage = NOTHING
    overhead: Overhead | None = None
    calls: tuple[ModelCall, ...] = ()


NOTHING_METERED = Metered()


class Meter:
    """Add up what something costs. Safe to use from any thread.

    Attributes:
        decided_by: Who has taken the decision, as its brain says; None: nobody did, or nobody said.
        thought: What whoever decided thought by itself, which nobody else is told.
        hear: Told of each call of a model as it is noted.
        is_exhausted: Returns whether the goal's budget is spent, with what this meter has counted.
    """

    def __init__(self, total: Usage = NOTHING, hear: Callable[[ModelCall], None] | None = None) -> None:
        self.decided_by: DecidedBy | None = None
        self.thought = ""
        self.hear = hear
        self.is_exhausted: Callable[[], bool] = lambda: False
        self._total = total
        self._overhead = NO_OVERHEAD
        self._calls: tuple[ModelCall, ...] = ()
        self._lock = threading.Lock()

    @property
    def total(self) -> Usage:
        """What was added and not taken."""
        with self._lock:
            return self._total

    @property
    def overhead(self) -> Overhead | None:
        """What of the total came to nothing by itself; None if nothing did."""
        with self._lock:
            return _told(self._overhead)

    def add(self, usage: Usage) -> None:
        """Count something more."""
        with self._lock:
            self._total = self._total.plus(usage)

    def set_apart(self, overhead: Overhead) -> None:
        """Say what of that which was counted came to nothing by itself."""
        with self._lock:
            self._overhead = self._overhead.plus(overhead)

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """What models were asked, in order; of very many the last."""
        with self._lock:
            return self._calls

    def note(self, *calls: ModelCall) -> None:
        """Tell of calls of a model; what they cost is counted apart."""
        with self._lock:
            self._calls = (*self._calls, *calls)[-MAX_CALLS:]
        if self.hear is not None:
            for call in calls:
                self.hear(call)

    def take(self) -> Metered:
        """Return what was counted, and start again at nothing."""
        with self._lock:
            taken = Metered(self._total, _told(self._overhead), self._calls)
            self._total, self._overhead, self._calls = NOTHING, NO_OVERHEAD, ()
        return taken


def _told(overhead: Overhead) -> Overhead | None:
    return None if overhead == NO_OVERHEAD else overhead
