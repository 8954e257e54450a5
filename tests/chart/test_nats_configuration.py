"""A real nats-server runs what the chart configures, with the credentials that the chart's Job makes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from ioa.adapters.nats_connection import NatsSettings, open_connection
from ioa.adapters.nats_server import find_nats_server
from ioa.adapters.nats_topology import ensure_pool_consumer
from ioa.cli.cluster_credentials import Plan, make_credentials
from ioa.cli.credentials import FolderSecrets
from ioa.errors import UnavailableError
from ioa.protocol.ids import PoolId
from ioa.runtime.control_plane import ControlPlaneSettings, ensure_topology
from tests.chart.rendering import main_container, render

pytestmark = pytest.mark.chart

_PATIENCE = timedelta(seconds=30)


@dataclass(frozen=True)
class Cluster:
    """Nodes as the chart configures them, but on this machine: where clients and monitors connect, and where the seeds lie."""

    url: str
    monitors: Sequence[str]
    secrets: Path

    def settings(self, secret: str, key: str = "seed") -> NatsSettings:
        """The settings of whoever has this seed."""
        return NatsSettings(self.url, secret, seed=str(self.secrets / secret / key))


@pytest.mark.parametrize("nodes", [1, 3])
async def test_services_and_agents_are_let_in_by_their_seeds(tmp_path: Path, nodes: int) -> None:
    """The registry makes every stream on all nodes, and an agent connects as itself."""
    async with _running(tmp_path, nodes) as cluster:
        async with open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry:
            await ensure_topology(registry, ControlPlaneSettings(replicas=nodes))
            log = (await registry.jetstream().stream_info("IOA_LOG")).config
        async with open_connection(cluster.settings("ioa-calculator-nats", "ioa-calculator-1"), patience=_PATIENCE) as agent:
            connected = agent.is_connected

        assert (log.num_replicas, connected) == (nodes, True)


async def test_nobody_gets_in_without_a_seed(tmp_path: Path) -> None:
    """An open port is no open door."""
    async with _running(tmp_path, 1) as cluster:
        with pytest.raises(UnavailableError):
            async with open_connection(NatsSettings(cluster.url, "nobody"), patience=timedelta(seconds=1)):
                pass


async def test_keda_finds_the_queue_where_it_is_told_to_look(tmp_path: Path) -> None:
    """Account, stream and consumer of the ScaledObject are those that NATS's monitoring shows."""
    pool = {"name": "a", "target": "a.py:a", "autoscaling": {"enabled": True}}
    [trigger] = (await asyncio.to_thread(render, {"agentPools": [pool]})).one("ScaledObject", "ioa-a")["spec"]["triggers"]
    wanted = trigger["metadata"]
    async with (
        _running(tmp_path, 1) as cluster,
        open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry,
        httpx.AsyncClient() as http,
    ):
        await ensure_topology(registry, ControlPlaneSettings())
        await ensure_pool_consumer(registry.jetstream(), PoolId("a"))
        answer = (await http.get(f"{cluster.monitors[0]}/jsz?acc={wanted['account']}&consumers=true&config=true")).json()

    found = [
        (account["name"], stream["name"], consumer["name"])
        for account in answer["account_details"]
        for stream in account["stream_detail"]
        for consumer in stream.get("consumer_detail", ())
    ]
    assert (wanted["account"], wanted["stream"], wanted["consumer"]) in found


async def test_probes_ask_what_the_server_answers(tmp_path: Path) -> None:
    """Each of the three says that a healthy server is."""
    container = main_container((await asyncio.to_thread(render)).one("StatefulSet", "ioa-nats"))
    paths = [container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    async with (
        _running(tmp_path, 1) as cluster,
        open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry,
        httpx.AsyncClient() as http,
    ):
        await ensure_topology(registry, ControlPlaneSettings())
        codes = [(await http.get(cluster.monitors[0] + path)).status_code for path in paths]

    assert (codes, len(set(paths))) == ([200, 200, 200], 3)


@asynccontextmanager
async def _running(folder: Path, nodes: int) -> AsyncIterator[Cluster]:
    """Run the chart's configuration, with the addresses and folders of this machine in place of a pod's."""
    rendered = await asyncio.to_thread(render, {"nats": {"replicas": nodes}})
    config = rendered.one("ConfigMap", "ioa-nats")["data"]["nats.conf"]
    ports = _free_ports(3 * nodes)
    plan = json.loads(rendered.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])
    plan["routes"] = [f"127.0.0.1:{port}" for port in ports[nodes : 2 * nodes]]
    await asyncio.to_thread(make_credentials, Plan.model_validate(plan), FolderSecrets(folder / "secrets"))
    async with AsyncExitStack() as stack:
        for number in range(nodes):
            client, route, monitor = ports[number::nodes]
            here = {
                "0.0.0.0:4222": f"127.0.0.1:{client}",
                "0.0.0.0:6222": f"127.0.0.1:{route}",
                "0.0.0.0:8222": f"127.0.0.1:{monitor}",
                "/data": str(folder / f"data-{number}"),
                "/var/run/nats": str(folder),
            }
            await stack.enter_async_context(_node(folder / f"node-{number}", config, here, folder / "secrets"))
        urls = ",".join(f"nats://127.0.0.1:{port}" for port in ports[:nodes])
        yield Cluster(urls, [f"http://127.0.0.1:{port}" for port in ports[2 * nodes :]], folder / "secrets")


@asynccontextmanager
async def _node(folder: Path, config: str, here: Mapping[str, str], secrets: Path) -> AsyncIterator[None]:
    for there, place in here.items():
        config = config.replace(there, place)
    await asyncio.to_thread(_lay_out, folder, config, secrets)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(find_nats_server()), "--config", str(folder / "nats.conf"), stdout=log, stderr=log,
            env={**os.environ, "POD_NAME": f"ioa-nats-{folder.name.rpartition('-')[2]}"},
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            await process.wait()


def _lay_out(folder: Path, config: str, secrets: Path) -> None:
    folder.mkdir()
    (folder / "authorization").symlink_to(secrets / "ioa-nats-authorization")
    (folder / "nats.conf").write_text(config)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
