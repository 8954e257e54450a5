"""Leases are kept whatever groups there are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

import pytest

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.open_groups import NatsMemberships
from ioa.adapters.nats.request import NatsRequester
from ioa.adapters.nats.server import NatsServer
from ioa.protocol import subjects
from ioa.protocol.ids import AgentId, CommId, PoolId
from ioa.protocol.registry import Lease, Register, Renew
from ioa.runtime.process import background
from tests.rig.processes import open_services
from tests.unit.group.scenario import card

pytestmark = pytest.mark.blocks_loop  # 15,000 memberships are written by one loop

AGENTS = [AgentId(f"agent-{number}") for number in range(30)]
GROUPS = [CommId(f"g{number}") for number in range(500)]


async def test_renewals_cost_the_same_with_many_groups(nats_server: NatsServer, tmp_path: Path) -> None:
    """Thirty agents in 500 open groups each, while other groups go on: every renewal is answered, as soon as before."""
    async with (
        open_connection(NatsSettings(nats_server.url, "test")) as client,
        open_services(nats_server.url, tmp_path / "logs", {"IOA_RATE": "1000"}, show_logs=False) as services,
    ):
        await services.start("ioa_registry", replicas=1)
        requester, loop = NatsRequester(client), asyncio.get_running_loop()
        for agent_id in AGENTS:
            await requester.request(subjects.register(PoolId(agent_id), agent_id), Register(card=card(agent_id)), Lease)
        at_once = asyncio.Semaphore(64)

        async def join(comm_id: CommId) -> None:
            async with at_once:
                await NatsMemberships(client).add(AGENTS, comm_id)

        async def append() -> None:
            while True:
                await client.publish(subjects.log(CommId("other")), b"")
                await asyncio.sleep(0.02)

        async def renew(agent_id: AgentId) -> tuple[float, Lease]:
            started = loop.time()
            lease = await requester.request(subjects.renew(PoolId(agent_id), agent_id), Renew(agent_id=agent_id), Lease)
            return loop.time() - started, lease

        async def rounds() -> list[tuple[float, Lease]]:
            return [answer for _ in range(10) for answer in await asyncio.gather(*map(renew, AGENTS))]

        async with background(append()):
            before = await rounds()
        await asyncio.gather(*(join(comm_id) for comm_id in GROUPS))
        async with background(append()):
            answers = await rounds()
        newest = [await NatsMemberships(client).newest(agent_id) for agent_id in AGENTS]
    assert [lease.joined for _, lease in answers] == newest * 10
    assert median(took for took, _ in answers) < 5 * median(took for took, _ in before)
