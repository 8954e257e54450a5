"""Three nats-servers under load: one may be killed or cut off, the leader too, and all may be gone for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.topology import LOG, TIMERS
from ioa.testing.log_checker import check
from tests.e2e.chaos.conftest import QUICK
from tests.rig.fleet import CONTROL_PLANE, WORKERS, Fleet, open_fleet
from tests.rig.nats_cluster import NatsCluster, open_nats_cluster

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.blocks_loop,
    pytest.mark.timeout(240),
    # nats-py drops the connection that it could not open to a server that hears nothing.
    pytest.mark.filterwarnings("ignore:unclosed <StreamWriter:ResourceWarning"),
]

_OUTAGE = timedelta(seconds=60)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[NatsCluster]:
    """Three nodes that sync every write."""
    async with open_nats_cluster(tmp_path / "nats") as cluster:
        yield cluster


@pytest.fixture
async def on_cluster(cluster: NatsCluster, tmp_path: Path) -> AsyncIterator[Fleet]:
    """The whole system with every stream in three copies."""
    async with open_fleet(cluster.url, tmp_path / "fleet", {**QUICK, "IOA_REPLICAS": "3"}) as fleet:
        await fleet.start(*CONTROL_PLANE, *WORKERS)
        await fleet.until_online()
        yield fleet


async def test_a_leader_dies_and_a_node_is_cut_off(cluster: NatsCluster, on_cluster: Fleet) -> None:
    """The log's leader is killed and comes back, then another node hears and answers nothing for a while."""
    await on_cluster.publish_mix(20, seed=50)
    leader = await cluster.leader_of(on_cluster.client, LOG)
    await cluster.crash(leader)
    await on_cluster.publish_mix(10, seed=51)
    await cluster.start(leader)
    cut_off = await cluster.leader_of(on_cluster.client, TIMERS)
    cluster.freeze(cut_off)
    await on_cluster.publish_mix(10, seed=52)
    cluster.thaw(cut_off)
    evidence = await on_cluster.evidence()
    assert check(evidence) == []


async def test_all_of_nats_is_gone_for_a_while(cluster: NatsCluster, on_cluster: Fleet) -> None:
    """All nodes are killed and stay away for a minute: what ran goes on where it was, without anybody's help."""
    await on_cluster.publish_mix(20, seed=53)
    for name in cluster.nodes:
        await cluster.crash(name)
    await asyncio.sleep(_OUTAGE.total_seconds())
    await asyncio.gather(*(cluster.start(name) for name in cluster.nodes))
    await on_cluster.publish_mix(5, seed=54)
    evidence = await on_cluster.evidence(within=timedelta(seconds=90))
    assert check(evidence) == []
