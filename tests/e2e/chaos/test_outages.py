"""What is away for longer than a lease, and comes back: nobody is taken for lost who was there, and every answer is right."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.outages import OUTAGES, suffer, undisturbed

pytestmark = [pytest.mark.chaos, pytest.mark.blocks_loop, pytest.mark.timeout(400)]

_GOALS = 12


@pytest.mark.parametrize("outage", ["nats-server frozen 40"])
async def test_an_outage_costs_time_and_nothing_else(outage: str, tmp_path: Path) -> None:
    """Half of the goals are under way when it begins, the others are published meanwhile."""
    work = await undisturbed(tmp_path / "undisturbed", _GOALS)
    verdict = await suffer(OUTAGES[outage], tmp_path / "suffered", work, _GOALS)
    assert (verdict.wrong, work < timedelta(minutes=2)) == ([], True)
