"""nats-server comes back with an empty store, and what was purged by hand stays ended: everybody goes on by themselves."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from ioa.adapters.nats.streams.stream import stream_names
from ioa.adapters.nats.streams.topology import LOG, RESULTS, STREAMS
from ioa.adapters.nats.wire.embedded_server import NatsServer
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.protocol.goals import Reason
from ioa.protocol.ids import LOCAL, GoalId, GoalName, comm_id_of_goal
from tests.e2e.chaos.conftest import QUICK
from tests.rig.deadline import eventually
from tests.rig.fleet import CONTROL_PLANE, ROUTERS, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import check, check_open_groups, check_results
from tests.rig.nats_server import crash
from tests.rig.ports import held_ports

pytestmark = [pytest.mark.faults, pytest.mark.timeout(150), pytest.mark.blocks_loop]  # it waits for forks on a busy machine

_WITHIN = timedelta(seconds=30)
GOALS = [GoalId(f"again-{number}") for number in range(5)]


async def _statuses(ports: Sequence[int]) -> list[int]:
    """What `/readyz` of each process answers."""
    async with httpx.AsyncClient(trust_env=False) as http:
        return [(await http.get(f"http://127.0.0.1:{port}/readyz", timeout=10)).status_code for port in ports]


async def _streams(fleet: Fleet) -> set[str]:
    try:
        return await stream_names(fleet.client)
    except UnavailableError:
        return set()


async def test_goals_published_again_on_an_empty_store_conclude_again(nats_server: NatsServer, tmp_path: Path) -> None:
    """Nothing but nats-server is restarted. Streams are back, processes ready, and the same ids conclude within half a minute."""
    async with AsyncExitStack() as stack:
        ports = stack.enter_context(held_ports(len(CONTROL_PLANE)))
        fleet = await stack.enter_async_context(open_fleet(nats_server.url, tmp_path / "fleet", QUICK))
        for name, port in zip(CONTROL_PLANE, ports, strict=True):
            await fleet.start(name, env={"IOA_METRICS_PORT": str(port)})
        await fleet.start(*WORKERS)
        await fleet.until_online()
        for goal_id in GOALS:
            await fleet.publish(goal_id, "mixed")
        before = await fleet.evidence()

        await crash(nats_server)
        await asyncio.to_thread(shutil.rmtree, tmp_path / "nats" / "jetstream")
        gone = await eventually(lambda: _statuses(ports), lambda seen: set(seen) == {503}, within=_WITHIN)
        await nats_server.start()
        await eventually(lambda: _streams(fleet), lambda names: set(STREAMS) <= names, within=_WITHIN)
        await eventually(lambda: _statuses(ports), lambda seen: set(seen) == {200}, within=_WITHIN)
        for goal_id in GOALS:
            await fleet.publish_again(goal_id)
        after = await fleet.evidence(within=_WITHIN)
        pids = [name for name in (*CONTROL_PLANE, *WORKERS) if fleet.has_died(name)]

    assert (check(before), set(gone), pids) == ([], {503}, [])
    assert [*check_results(after), *check_open_groups(after)] == []
    assert [result.reason for result in after.results] == [Reason.CONCLUDED] * len(GOALS)


async def test_a_success_whose_log_was_purged_stays_one(fleet: Fleet) -> None:
    """Routers that start when the log of an ended goal is gone, and later its result too, write neither an entry nor a result."""
    js, goal_id = fleet.client.jetstream(), GoalId("purged")
    await fleet.publish(goal_id, "mixed", timeout=timedelta(seconds=20))
    evidence = await fleet.evidence()
    reasons = [result.reason for result in evidence.results]
    left = []
    for stream, subject in ((LOG, subjects.log(comm_id_of_goal(goal_id))), (RESULTS, subjects.result_of(GoalName(LOCAL, goal_id)))):
        await js.purge_stream(stream, subject=subject)
        for router in ROUTERS:
            await fleet.kill(router)
        await fleet.start(*ROUTERS)
        other = GoalId(f"after-{stream}")
        fleet.goals.clear()
        await fleet.publish(other, "mixed")
        await fleet.rest()
        left.append(list((await js.stream_info(stream, subjects_filter=subject)).state.subjects or {}))
    assert (reasons, left) == ([Reason.CONCLUDED], [[], []])
