"""What is read of others takes no more than its share of the loop, and nobody waits who has little to read."""

from __future__ import annotations

import asyncio

import pytest

from ioa.adapters.nats.loop_share import LoopShare


class _Loop:
    """Seconds of a loop, of which readings take some and pauses the rest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.paused = 0.0, 0.0
        monkeypatch.setattr(asyncio, "sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.paused += seconds

    def reading(self, seconds: float) -> float:
        self.now += seconds
        return seconds


@pytest.mark.parametrize(("each", "times"), [(0.5, 20), (0.001, 10_000)])
async def test_whoever_reads_without_end_has_a_quarter(monkeypatch: pytest.MonkeyPatch, each: float, times: int) -> None:
    """However long one piece takes to read: behind it the loop is left to others for three times as long."""
    loop = _Loop(monkeypatch)
    share = LoopShare(0.25, now=lambda: loop.now)
    for _ in range(times):
        await share.read(lambda: loop.reading(each))
    read = each * times
    assert read / 0.25 - 4 * each - 0.2 < loop.now <= read / 0.25


async def test_nobody_waits_who_has_little_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the time, of which nothing is owed, is read as it comes; so is the first long piece."""
    loop = _Loop(monkeypatch)
    share = LoopShare(0.25, now=lambda: loop.now)
    for _ in range(100):
        await share.read(lambda: loop.reading(0.01))
        loop.now += 0.09
    await share.read(lambda: loop.reading(1.0))
    assert loop.paused == 0.0


async def test_what_cannot_be_read_is_counted_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is told to who asked, and what it took to find is owed."""
    loop = _Loop(monkeypatch)
    share = LoopShare(0.25, now=lambda: loop.now)

    def fails() -> None:
        loop.reading(1.0)
        raise ValueError("no such entry")

    with pytest.raises(ValueError, match="no such entry"):
        await share.read(fails)
    await share.read(lambda: None)
    assert loop.paused == pytest.approx(2.9)
