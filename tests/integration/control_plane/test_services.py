"""The services as they run: processes in two replicas each, on a real nats-server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.chaos.conftest import QUICK
from tests.rig.fleet import CONTROL_PLANE, WORKERS, open_fleet
from tests.rig.log_checker import check


@pytest.mark.slow
@pytest.mark.blocks_loop  # it waits for forks on a busy machine
async def test_goals_lose_nothing_when_replicas_are_killed(nats_url: str, tmp_path: Path) -> None:
    """One replica of each service is killed under load: each log is complete and legal, and each goal has its right result."""
    async with open_fleet(nats_url, tmp_path / "fleet", QUICK) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        await fleet.until_online()
        await fleet.publish_mix(8, seed=3)
        for number, name in enumerate(("router-0", "groups-0", "registry-0")):
            await fleet.kill(name)
            await fleet.publish_mix(2, seed=4 + number)
        assert check(await fleet.evidence()) == []
