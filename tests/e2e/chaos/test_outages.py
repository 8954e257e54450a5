"""Outages that last longer than a lease: no present agent counts as lost, and every answer is right."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.outages import OUTAGES, Setup, suffer, undisturbed

pytestmark = [pytest.mark.chaos, pytest.mark.blocks_loop, pytest.mark.timeout(400)]

_GOALS = 12


@pytest.mark.parametrize("setup", [Setup(), Setup(nodes=3, tenants=2)], ids=["one_server", "secured_cluster_of_two_tenants"])
async def test_frozen_nats_costs_time_and_nothing_else(setup: Setup, tmp_path: Path) -> None:
    """Half of the goals are running when NATS freezes for 40 s; the other half is published meanwhile."""
    work = await undisturbed(setup, tmp_path / "undisturbed", _GOALS)
    verdicts = await suffer(setup, OUTAGES["nats-server frozen 40"], tmp_path / "suffered", work, _GOALS)
    assert [verdict.wrong for verdict in verdicts] == [[] for _ in verdicts]
    assert work < timedelta(minutes=2)
