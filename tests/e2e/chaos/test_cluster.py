"""Three nats-servers under load: one may be killed or cut off, the leader too, and all may be gone for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from ioa.adapters.nats.streams.topology import LOG, TIMERS
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.client.client import Client
from ioa.client.history import conversation
from ioa.ports.group_log import StoredEntry
from ioa.protocol.ids import GoalId, comm_id_of_goal
from tests.e2e.chaos.conftest import QUICK
from tests.rig.fleet import CONTROL_PLANE, WORKERS, Fleet, open_fleet
from tests.rig.log_checker import check
from tests.rig.nats_cluster import NatsCluster, open_nats_cluster

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.blocks_loop,
    pytest.mark.timeout(240),
    # nats-py drops the connection that it could not open to a server that hears nothing.
    pytest.mark.filterwarnings("ignore:unclosed <StreamWriter:ResourceWarning"),
]


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


async def test_who_follows_sees_the_log_at_whichever_node(cluster: NatsCluster, on_cluster: Fleet) -> None:
    """The log's leader dies and another node is cut off while goals are followed at each node: all see every entry, once, in order.

    Reads are answered by whichever copy is asked, which may be behind the others.
    """
    seen: dict[tuple[str, GoalId], list[StoredEntry]] = {}

    async def follow(node: str, client: Client, goal_id: GoalId) -> None:
        seen[node, goal_id] = [stored async for stored in client.follow(goal_id)]

    async with AsyncExitStack() as stack:
        clients = dict[str, Client]()
        for name, node in cluster.nodes.items():
            connecting = open_connection(NatsSettings(node.url, f"follower-at-{name}"))
            clients[name] = Client(await stack.enter_async_context(connecting))
        followers = await stack.enter_async_context(asyncio.TaskGroup())

        async def publish(count: int, seed: int) -> None:
            for goal_id in await on_cluster.publish_mix(count, seed=seed):
                for node, client in clients.items():
                    followers.create_task(follow(node, client, goal_id))

        await publish(10, seed=55)
        leader = await cluster.leader_of(on_cluster.client, LOG)
        await cluster.crash(leader)
        await publish(5, seed=56)
        await cluster.start(leader)
        cut_off = await cluster.leader_of(on_cluster.client, LOG)
        cluster.freeze(cut_off)
        await publish(5, seed=57)
        cluster.thaw(cut_off)
        evidence = await on_cluster.evidence()
    groups = Client(on_cluster.client)
    logs = {goal_id: await conversation(groups, comm_id_of_goal(goal_id)) for goal_id in on_cluster.goals}
    assert {who: told for who, told in seen.items() if told != _up_to_its_end(logs[who[1]])} == {}
    assert (check(evidence), len(seen)) == ([], len(on_cluster.goals) * len(cluster.nodes))


def _up_to_its_end(log: Sequence[StoredEntry]) -> Sequence[StoredEntry]:
    """What is followed: teams that were open when the goal ended may say something afterwards."""
    ends = (place for place, one in enumerate(log) if one.entry.state.parent is None and one.entry.state.phase.is_terminal)
    return log[: next(ends) + 1]
