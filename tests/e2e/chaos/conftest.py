"""A system of processes under load, small time-outs, and the judgement at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.embedded_server import NatsServer
from tests.rig.fleet import CONTROL_PLANE, WORKERS, Fleet, open_fleet

QUICK = {
    "IOA_LEASE": "3",
    "IOA_RENEW_EVERY": "0.5",
    "IOA_FLOOR_TIMEOUT": "10",
    "IOA_TASK_LEASE": "4",
}
"""Time-outs for tests: an agent that was killed is missed within seconds."""


@pytest.fixture
async def fleet(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Fleet]:
    """The control plane in two replicas each and six agents in two processes, on a nats-server of the test's own."""
    async with open_fleet(nats_server.url, tmp_path / "fleet", QUICK) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        await fleet.until_online()
        await fleet.until_serving()
        yield fleet
