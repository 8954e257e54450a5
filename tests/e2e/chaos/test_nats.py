"""nats-server dies, or is gone for a while, under load: everybody reconnects by themselves."""

from __future__ import annotations

import pytest

from ioa.adapters.nats_server import NatsServer
from ioa.testing.fleet import Fleet
from ioa.testing.log_checker import check
from ioa.testing.nats_server import crash

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


async def test_nats_server_is_killed_and_started_again(fleet: Fleet, nats_server: NatsServer) -> None:
    """Three crashes in the middle of twenty goals cost time and nothing else."""
    for seed in range(3):
        await fleet.publish_mix(10, seed=40 + seed)
        await crash(nats_server)
        await nats_server.start()
    evidence = await fleet.evidence()
    assert check(evidence) == []
