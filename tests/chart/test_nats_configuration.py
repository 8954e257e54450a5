"""A real nats-server runs what the chart configures, with the credentials that the chart's Job makes."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any

import httpx
import pytest

from ioa.adapters.nats.connection import NatsSettings, open_connection
from ioa.adapters.nats.server import MAX_SUBSCRIBED_PARTS
from ioa.adapters.nats.topology import ensure_pool_consumer
from ioa.errors import UnavailableError
from ioa.protocol import subjects
from ioa.protocol.ids import PoolId
from ioa.protocol.kept_out import KeptOut
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from tests.chart.nats_nodes import Cluster, open_nodes
from tests.chart.rendering import Manifest, main_container, render, tool
from tests.rig.deadline import eventually
from tests.rig.letting_in import is_let_in
from tests.rig.multipath import takes_second_paths

pytestmark = pytest.mark.chart

_PATIENCE = timedelta(seconds=30)


@pytest.mark.parametrize("nodes", [1, 3])
async def test_services_and_agents_are_let_in_by_their_seeds(tmp_path: Path, nodes: int) -> None:
    """The registry makes every stream on all nodes, and an agent connects as itself."""
    async with _running(tmp_path, nodes) as cluster:
        async with (
            open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry,
            open_topology(registry, ControlPlaneSettings(replicas=nodes)),
        ):
            log = (await registry.jetstream().stream_info("IOA_LOG")).config
        async with open_connection(cluster.settings("ioa-calculator-nats", "ioa-calculator-1"), patience=_PATIENCE) as agent:
            connected = agent.is_connected

        assert (log.num_replicas, connected) == (nodes, True)


async def test_the_gate_beside_nats_keeps_out_whom_the_registry_names(tmp_path: Path) -> None:
    """The container as it is rendered finds the authorization and its server, by whose certificate it is that; others stay."""
    rendered = await asyncio.to_thread(render, {"nats": {"replicas": 1}})
    pod = rendered.one("StatefulSet", "ioa-nats")["spec"]["template"]["spec"]
    [once], [gate] = pod["initContainers"], pod["containers"][1:]
    assert once["command"] == [*gate["command"], "--once"]
    async with open_nodes(tmp_path, rendered) as cluster:
        told = {one["name"]: one["value"] for one in gate["env"] if "value" in one} | {
            "IOA_NATS_URL": cluster.url,
            "IOA_NATS_CA": str(cluster.authority),
            "IOA_GATE_AUTHORIZATION": str(tmp_path / "node-0" / "authorization" / "authorization.conf"),
            "IOA_GATE_LET_IN": str(tmp_path / "node-0" / "let-in" / "let-in.conf"),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, *gate["command"][1:], env={**os.environ, **told}, stdout=subprocess.DEVNULL
        )
        try:
            async with open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry:

                async def is_kept_out() -> bool:
                    told = KeptOut(by="r1", names=("calculator-1",))
                    await registry.publish(subjects.KEPT_OUT, told.model_dump_json().encode())
                    return not await is_let_in(cluster.settings("ioa-calculator-nats", "ioa-calculator-1"))

                await eventually(is_kept_out, within=_PATIENCE)
                assert await is_let_in(cluster.settings("ioa-calculator-nats", "ioa-calculator-2"))
        finally:
            process.terminate()
            await process.wait()


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
        open_topology(registry, ControlPlaneSettings()),
        httpx.AsyncClient() as http,
    ):
        await ensure_pool_consumer(registry.jetstream(), PoolId("a"))
        answer = (await http.get(f"{cluster.monitors[0]}/jsz?acc={wanted['account']}&consumers=true&config=true")).json()

    found = [
        (account["name"], stream["name"], consumer["name"])
        for account in answer["account_details"]
        for stream in account["stream_detail"]
        for consumer in stream.get("consumer_detail", ())
    ]
    assert (wanted["account"], wanted["stream"], wanted["consumer"]) in found


def test_every_server_takes_subscriptions_of_as_few_parts() -> None:
    """Also one that Compose runs, and one of one's own as the guide says: `ioa up` is where it is tried."""
    root = Path(__file__).parents[2]
    told = [render().one("ConfigMap", "ioa-nats")["data"]["nats.conf"]]
    told += [(root / name).read_text(encoding="utf-8") for name in ("deploy/compose.yaml", "docs/security.md")]
    assert [re.findall(r"(?m)^ *max_sub_tokens: (\d+)$", one) for one in told] == [[str(MAX_SUBSCRIBED_PARTS)]] * 3


async def test_a_connection_has_one_path(tmp_path: Path) -> None:
    """Of a second one, by MPTCP, neither the server nor its gate would know."""
    async with _running(tmp_path, 1) as cluster, open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE):
        assert not await asyncio.to_thread(takes_second_paths, int(cluster.url.rpartition(":")[2]))


async def test_probes_ask_what_the_server_answers(tmp_path: Path) -> None:
    """Each of the three says that a healthy server is."""
    container = main_container((await asyncio.to_thread(render)).one("StatefulSet", "ioa-nats"))
    async with (
        _running(tmp_path, 1) as cluster,
        open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry,
        open_topology(registry, ControlPlaneSettings()),
    ):
        probed = [
            await _probed(container, probe, cluster.monitors[0]) for probe in ("startupProbe", "readinessProbe", "livenessProbe")
        ]

    assert probed == [[200], [200], [200]]


@pytest.mark.parametrize("nodes", [1, 3])
async def test_nats_starts_where_a_tenant_is_gone(tmp_path: Path, nodes: int) -> None:
    """What it has stored is still there; the startup probe waits for those of the tenants that are let in, and for nobody else."""
    for number, names in enumerate((["acme", "umbra"], ["umbra"])):
        tenants = [{"name": name, "storeBytes": 100_000_000, "users": [], "agentPools": []} for name in names]
        rendered = await asyncio.to_thread(render, {"nats": {"replicas": nodes}, "tenants": tenants})
        startup = main_container(rendered.one("StatefulSet", "ioa-nats"))
        await asyncio.to_thread(_move_in, tmp_path, number, nodes)
        async with open_nodes(tmp_path / str(number), rendered) as cluster:
            for beginning in ("", *(f"{name}-" for name in names)):
                registry = cluster.settings(f"ioa-{beginning}registry-nats")
                async with (
                    open_connection(registry, patience=_PATIENCE) as client,
                    open_topology(client, ControlPlaneSettings(replicas=nodes)),
                ):
                    pass
            healthy = [[200] * (1 + len(names))] * nodes
            await eventually(partial(_started, startup, cluster), partial(eq, healthy), within=_PATIENCE)


def _move_in(folder: Path, number: int, nodes: int) -> None:
    """Make a folder for a run of NATS, with what the run before has stored."""
    (folder / str(number)).mkdir()
    for node in range(nodes) if number else ():
        (folder / str(number - 1) / f"data-{node}").rename(folder / str(number) / f"data-{node}")


async def _started(container: Manifest, cluster: Cluster) -> list[list[int]]:
    return [await _probed(container, "startupProbe", monitor) for monitor in cluster.monitors]


async def _probed(container: Manifest, probe: str, monitor: str) -> list[int]:
    """What each of the addresses that a probe asks answers on a node."""
    asked = [url.removeprefix("http://127.0.0.1:8222") for url in container[probe]["exec"]["command"] if "://" in url]
    async with httpx.AsyncClient(base_url=monitor) as http:
        return [(await http.get(path)).status_code for path in asked]


@pytest.mark.parametrize("values", [{}, {"tls": {"existingSecret": "t"}}], ids=["helm's certificate", "a certificate of one's own"])
async def test_tls_encrypts_clients_and_nodes(tmp_path: Path, values: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Three nodes find each other by certificates; whoever does not trust their authority turns away, and is told why.

    Who leaves has nothing to warn of.
    """
    if values:
        await asyncio.to_thread(_make_certificates, tmp_path / "tls")
    async with open_nodes(tmp_path, await asyncio.to_thread(render, values)) as cluster:
        trusting = cluster.settings("ioa-registry-nats")
        async with (
            open_connection(trusting, patience=_PATIENCE) as registry,
            open_topology(registry, ControlPlaneSettings(replicas=3)),
        ):
            copies = (await registry.jetstream().stream_info("IOA_LOG")).config.num_replicas
        for stranger in (replace(trusting, ca=None), replace(trusting, ca=None, url=trusting.url.replace("tls://", "nats://"))):
            with pytest.raises(UnavailableError, match=r"encrypts, and is not trusted") as refused:
                async with open_connection(stranger, patience=timedelta(seconds=1)):
                    pass
            assert refused.value.hint == "IOA_NATS_CA names the certificate of its authority."

    assert (copies, [record.getMessage() for record in caplog.records if record.name == "asyncio"]) == (3, [])


def test_the_certificate_names_every_way_to_nats() -> None:
    """Its services, its nodes and a forwarded port; helm makes none where somebody else does, or where NATS is not the chart's."""
    secret = render().one("Secret", "ioa-nats-tls")
    told = subprocess.run(
        [tool("openssl"), "x509", "-noout", "-text"],
        input=b64decode(secret["data"]["tls.crt"]), check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip
    assert "ASN1 OID: prime256v1" in told, "whoever begins a handshake and no more has the server sign: RSA takes 12 times as long"
    assert all(name in told for name in ("DNS:ioa-nats.agents.svc", "DNS:*.ioa-nats-headless.agents.svc", "IP Address:127.0.0.1"))
    for others in (
        {"tls": {"existingSecret": "t"}},
        {"tls": {"certManager": {"enabled": True}}},
        {"tls": {"enabled": False}},
        {"nats": {"enabled": False, "externalUrl": "tls://n:4222"}},
    ):
        assert not render(others).has("Secret", "ioa-nats-tls")


def _make_certificates(folder: Path) -> None:
    """An authority, and a certificate of it for this machine's address, under the names that a Secret of type tls has."""
    folder.mkdir()
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for command in (
        f"{new} -x509 -days 1 -subj /CN=authority -keyout ca.key -out ca.crt",
        f"{new} -subj /CN=nats -keyout tls.key -out tls.csr",
        "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile names -out tls.crt",
    ):
        subprocess.run([tool("openssl"), *command.split()], cwd=folder, check=True, capture_output=True)


@asynccontextmanager
async def _running(folder: Path, nodes: int) -> AsyncIterator[Cluster]:
    async with open_nodes(folder, await asyncio.to_thread(render, {"nats": {"replicas": nodes}})) as cluster:
        yield cluster
