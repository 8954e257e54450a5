"""The control plane as it runs: registry, group setup and router as processes in two replicas each, on a real nats-server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ioa.adapters.nats.streams.topology import LOG
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.protocol import subjects
from ioa.protocol.ids import GoalId, PoolId, comm_id_of_goal
from ioa.protocol.registry import Lease, Renew
from tests.integration.control_plane.conversation import ADA, BOB, EVE, Caller, check, converse
from tests.rig.deadline import eventually
from tests.rig.processes import ServiceProcesses, open_services

SERVICES = ("ioa_registry", "ioa_groups", "ioa_router")


@pytest.fixture
def lease() -> int:
    """For how many seconds an agent counts as alive: longer than a busy machine keeps a renewal waiting."""
    return 20


@pytest.fixture
async def services(nats_url: str, tmp_path: Path, lease: int) -> AsyncIterator[ServiceProcesses]:
    """The control plane, ready."""
    env = {"IOA_LEASE": str(lease), "IOA_RENEW_EVERY": "0.5"}
    async with open_services(nats_url, tmp_path / "logs", env) as processes:
        await processes.start(*SERVICES)
        yield processes


@pytest.fixture
async def caller(services: ServiceProcesses, nats_url: str) -> AsyncIterator[Caller]:
    """Somebody outside, with three agents that keep their leases."""
    assert services.running("ioa_router")
    async with open_connection(NatsSettings(nats_url, "caller")) as client:
        caller = Caller(client)
        await caller.register(ADA, BOB, EVE)
        keeper = asyncio.create_task(_renew(caller))
        yield caller
        keeper.cancel()
        await asyncio.wait([keeper])


async def _renew(caller: Caller) -> None:
    while True:
        renewals = [
            caller.ask(subjects.agent(PoolId(agent_id), agent_id, subjects.RENEW), Renew(agent_id=agent_id), Lease)
            for agent_id in (ADA, BOB, EVE)
        ]
        await asyncio.gather(*renewals)
        await asyncio.sleep(0.5)


async def test_conversations_side_by_side_lose_nothing_when_replicas_die(caller: Caller, services: ServiceProcesses) -> None:
    """While every message is sent twice in a dozen groups, one replica of each service is killed: all logs are whole and legal."""
    goals = [GoalId(f"goal-{number}") for number in range(12)]

    async def entries_in_thirties() -> int:
        return (await caller.client.jetstream().stream_info(LOG)).state.messages // 30

    async with asyncio.TaskGroup() as group:
        talks = [group.create_task(converse(caller, goal_id)) for goal_id in goals]
        for number, module in enumerate(("ioa_router", "ioa_groups", "ioa_registry"), start=1):
            await eventually(entries_in_thirties, number.__le__)
            await services.running(module)[0].kill()
    assert [talk.result() for talk in talks] == [comm_id_of_goal(goal_id) for goal_id in goals]
    for goal_id in goals:
        await check(caller, goal_id)
