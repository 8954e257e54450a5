"""Cost of decisions and tasks, counted while they run, so that the group's budget holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ioa.protocol.decisions import MAX_CALLS, DecidedBy, ModelCall
from ioa.protocol.usage import NOTHING, Usage


class Metered(NamedTuple):
    """Counts of a meter.

    Attributes:
        usage: The total.
        calls: The last calls of models, in order.
    """

    usage: Usage = NOTHING
    calls: tuple[ModelCall, ...] = ()


NOTHING_METERED = Metered()


class Meter:
    """Adds up costs. Thread-safe.

    Attributes:
        decided_by: Origin of the decision, by its brain; None if unknown.
        thought: The model's answer with its private notes, for later prompts of the agent.
        hear: Called with each noted call of a model.
        is_exhausted: Returns whether the goal's budget is spent, with the counts of this meter.
    """

    def __init__(self, total: Usage = NOTHING, hear: Callable[[ModelCall], None] | None = None) -> None:
        self.decided_by: DecidedBy | None = None
        self.thought = ""
        self.hear = hear
        self.is_exhausted: Callable[[], bool] = lambda: False
        self._counts = Metered(total)
        self._lock = threading.Lock()

    @property
    def total(self) -> Usage:
        """The usage since the last `take`."""
        return self._counts.usage

    def add(self, usage: Usage) -> None:
        """Add a usage."""
        with self._lock:
            self._counts = self._counts._replace(usage=self._counts.usage.plus(usage))

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """The last calls of models, in order."""
        return self._counts.calls

    def note(self, *calls: ModelCall) -> None:
        """Record calls of a model; their usage is added separately."""
        with self._lock:
            self._counts = self._counts._replace(calls=(*self._counts.calls, *calls)[-MAX_CALLS:])
        if self.hear is not None:
            for call in calls:
                self.hear(call)

    def take(self) -> Metered:
        """Return the counts, and reset them."""
        with self._lock:
            taken, self._counts = self._counts, NOTHING_METERED
        return taken
