"""Three nats-servers on this machine that keep every stream in three copies, for tests that take one of them away."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import nats.errors
from nats.aio.client import Client

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import NatsServer, open_nats_server
from tests.rig.deadline import eventually
from tests.rig.nats_server import crash
from tests.rig.ports import held_ports
from tests.rig.standstill import freeze, thaw

NODES = 3


class NatsCluster:
    """A cluster that runs. Made by `open_nats_cluster`."""

    def __init__(self, nodes: dict[str, NatsServer]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        """Where clients connect: any of the nodes."""
        return ",".join(node.url for node in self.nodes.values())

    async def leader_of(self, client: Client, stream: str) -> str:
        """Wait until a stream has a leader and return the node's name."""

        async def look() -> str:
            try:
                cluster = (await client.jetstream().stream_info(stream)).cluster
            except (nats.errors.Error, TimeoutError):
                return ""
            return (cluster.leader if cluster else None) or ""

        return await eventually(look, within=timedelta(seconds=30))

    async def crash(self, name: str) -> None:
        """Kill a node by SIGKILL."""
        await crash(self.nodes[name])

    async def start(self, name: str) -> None:
        """Start a node again on its own folder."""
        await self.nodes[name].start()

    def freeze(self, name: str) -> None:
        """Stop a node's process without ending it: to the others it is cut off, while its connections stay open."""
        freeze(self.nodes[name].pid)

    def thaw(self, name: str) -> None:
        """Let a frozen node go on."""
        thaw(self.nodes[name].pid)


@asynccontextmanager
async def open_nats_cluster(
    folder: Path, *, sync_interval: str = "always", authorization: str = "{}", seed: str | None = None
) -> AsyncIterator[NatsCluster]:
    """Run three nodes until the block ends and yield when JetStream has a leader.

    Args:
        folder: Holds a folder for each node.
        sync_interval: JetStream's option; by default every write is synced, as on a cluster that must survive a power failure.
        authorization: See `open_nats_server`.
        seed: File with the seed of an admin, if there is an authorization.
    """
    async with AsyncExitStack() as stack:
        ports = stack.enter_context(held_ports(NODES))
        nodes: dict[str, NatsServer] = {}
        for number, port in enumerate(ports):
            name = f"n{number}"
            options = json.loads(authorization) | {
                "server_name": name,
                "cluster": {"name": "ioa", "listen": f"127.0.0.1:{port}", "routes": [f"nats://127.0.0.1:{one}" for one in ports]},
                "jetstream": {"store_dir": str(folder / name), "sync_interval": sync_interval},
            }
            server = open_nats_server(folder / name, None, authorization=json.dumps(options))
            nodes[name] = await stack.enter_async_context(server)
        cluster = NatsCluster(nodes)
        stack.callback(_thaw_all, cluster)
        async with open_connection(NatsSettings(cluster.url, "nats-cluster", seed=seed)) as client:
            await eventually(lambda: _has_leader(client), within=timedelta(seconds=30))
        yield cluster


async def _has_leader(client: Client) -> bool:
    try:
        await client.jetstream().account_info()
    except (nats.errors.Error, TimeoutError):
        return False
    return True


def _thaw_all(cluster: NatsCluster) -> None:
    """A frozen process hears no SIGTERM."""
    for name in cluster.nodes:
        try:
            cluster.thaw(name)
        except ProcessLookupError:
            continue
