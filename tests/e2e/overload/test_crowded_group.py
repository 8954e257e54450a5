"""One group with hundreds of open tasks beside small goals: everybody gets a result, and every deadline is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.protocol.goals import Reason
from tests.rig.crowd import Crowd, open_crowd
from tests.rig.processes import open_services

LATE_SECONDS = 5.0

_CROWDS = pytest.mark.parametrize("tasks", [128, pytest.param(320, marks=pytest.mark.chaos)])


@pytest.fixture
async def crowd(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Crowd]:
    """Agents of two teams on one router, one registry and one group setup, each a process."""
    async with (
        open_connection(NatsSettings(nats_server.url, "overload")) as client,
        open_services(nats_server.url, tmp_path / "logs", {"IOA_QUOTA_GROUP_TASKS": "400"}) as services,
    ):
        await services.start("ioa_registry", "ioa_groups", "ioa_router", replicas=1)
        async with open_crowd(client, nats_server.url, tmp_path / "agents") as ready:
            yield ready


@_CROWDS
async def test_a_crowded_group_stops_nobody(crowd: Crowd, tasks: int) -> None:
    """Its tasks of three seconds are all done; each goal beside them concludes, and those that get stuck end at their deadline."""
    async with asyncio.TaskGroup() as group:
        big = group.create_task(crowd.crowded(tasks, 3, timeout=timedelta(seconds=240)))
        beside = await crowd.beside(big, every=timedelta(seconds=2), stuck_every=timedelta(seconds=7))
    assert (big.result().result.reason, big.result().result.content) == (Reason.CONCLUDED, f"{tasks} of {tasks}")
    assert [one.result.reason for one in beside.small] == [Reason.CONCLUDED] * len(beside.small)
    assert [one.result.reason for one in beside.stuck] == [Reason.DEADLINE] * len(beside.stuck)
    assert max(one.late_seconds for one in beside.stuck) < LATE_SECONDS


@_CROWDS
async def test_a_crowded_group_ends_at_its_deadline(crowd: Crowd, tasks: int) -> None:
    """However many tasks are open and reported on, the group that has them ends in time, and its members are free again."""
    ended = await crowd.crowded(tasks, 600, timeout=timedelta(seconds=25))
    after = await crowd.small(1)
    assert (ended.result.reason, after.result.reason) == (Reason.DEADLINE, Reason.CONCLUDED)
    assert ended.late_seconds < LATE_SECONDS
