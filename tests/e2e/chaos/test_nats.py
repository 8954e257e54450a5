"""nats-server dies, or is gone for a while, under load: everybody reconnects by themselves."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from tests.e2e.chaos.conftest import QUICK
from tests.rig.fleet import CONTROL_PLANE, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import check

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine


async def test_a_copy_of_the_folder_is_a_backup(fleet: Fleet, nats_server: NatsServer, tmp_path: Path) -> None:
    """What was under way when nats-server was stopped and its folder copied ends on the copy, with agents that remember nothing."""
    await fleet.publish_mix(10, seed=45)
    await fleet.rest()
    await fleet.publish_mix(10, seed=46)
    await nats_server.stop()
    ignored = shutil.ignore_patterns("lock")
    await asyncio.to_thread(shutil.copytree, tmp_path / "nats", tmp_path / "copy", ignore=ignored)
    for name in (*CONTROL_PLANE, *WORKERS):
        await fleet.kill(name)
    async with (
        open_nats_server(tmp_path / "copy", None) as restored,
        open_fleet(restored.url, tmp_path / "restored", QUICK) as elsewhere,
    ):
        for worker in WORKERS:
            await elsewhere.wipe(worker)
        await elsewhere.start(*CONTROL_PLANE, *WORKERS)
        elsewhere.goals += fleet.goals
        assert check(await elsewhere.evidence()) == []
