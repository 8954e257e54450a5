"""What a request is charged with of the processor's time: its own, however often it is interrupted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ioa.adapters.nats import dispatching
from ioa.adapters.nats.dispatching import _Core, _OwnTime


@dataclass
class _Times:
    """In place of `time`: the clock, and how long this thread had the processor."""

    clock: float = 0.0
    had: float = 0.0

    def monotonic(self) -> float:
        return self.clock

    def thread_time(self) -> float:
        return self.had

    def go_on(self, seconds: float, had: float) -> None:
        self.clock += seconds
        self.had += had


@pytest.mark.parametrize(("others", "took", "had"), [(0.015, 0.005, 0.0001), (0.0005, 0.005, 0.0001), (0.015, 0.005, 0.005)])
async def test_who_is_interrupted_is_not_charged_with_what_others_did_before(
    monkeypatch: pytest.MonkeyPatch, others: float, took: float, had: float
) -> None:
    """But for a millisecond: so old may be what was read of the processor's time."""
    times, core = _Times(), _Core()
    monkeypatch.setattr(dispatching, "time", times)

    async def work(seconds: float, had: float) -> int:
        times.go_on(seconds, had)
        return 0

    await _OwnTime(work(0.0001, 0.0001), core)
    times.go_on(others, others)
    answering = _OwnTime(work(took, had), core)
    await answering
    assert had - 1e-9 <= answering.seconds <= had + 0.001
