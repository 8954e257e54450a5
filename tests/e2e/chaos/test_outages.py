"""Outages that last longer than a lease: no present agent counts as lost, and every answer is right."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.e2e.chaos.outages import OUTAGES, Setup, suffer, undisturbed

pytestmark = [pytest.mark.blocks_loop, pytest.mark.timeout(900)]

_SETUPS = {"one_server": Setup(), "secured_cluster_of_two_tenants": Setup(nodes=3, tenants=2)}
_SHORT = {
    ("nats-server frozen 40", "one_server"),
    ("nats-server frozen 40", "secured_cluster_of_two_tenants"),
    ("the only registry killed 20", "one_server"),
    ("worker killed 2.5", "one_server"),
}
"""The outages of the suite `chaos`; the suite `outages` contains the others."""


def _cases() -> Iterator[object]:
    for setup in _SETUPS:
        for outage in OUTAGES:
            mark = pytest.mark.chaos if (outage, setup) in _SHORT else pytest.mark.outages
            yield pytest.param(outage, _SETUPS[setup], marks=mark, id=f"{outage.replace(' ', '_')}-{setup}")


@pytest.mark.parametrize(("outage", "setup"), list(_cases()))
async def test_outage_costs_time_and_nothing_else(outage: str, setup: Setup, tmp_path: Path) -> None:
    """Half of the goals are running when the part is taken away; the other half is published meanwhile."""
    work = await undisturbed(setup, tmp_path / "undisturbed")
    assert await suffer(setup, OUTAGES[outage], tmp_path / "suffered", work) == []
    assert work < timedelta(minutes=2)
