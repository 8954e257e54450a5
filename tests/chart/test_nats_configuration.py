"""A real nats-server runs what the chart configures, with the credentials that the chart's Job makes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
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

from ioa.adapters.nats.streams.topology import ensure_pool_consumer
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.errors import UnavailableError
from ioa.hosting.credentials import load_roster, write_roster
from ioa.protocol.ids import PoolId
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from tests.chart.nats_nodes import Cluster, open_nodes
from tests.chart.rendering import Manifest, main_container, render, tool
from tests.rig.deadline import eventually
from tests.rig.letting_in import is_let_in

pytestmark = pytest.mark.chart

_AUTHORIZATION = "ioa-nats-authorization"
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


def test_the_reloader_watches_the_authorization_and_may_signal_nats() -> None:
    """The reloader watches the file that nats-server includes, and finds its process by the pid file, in one process namespace."""
    pod = render().one("StatefulSet", "ioa-nats")["spec"]["template"]["spec"]
    nats, reloader = pod["containers"]
    options = dict(zip(reloader["args"][::2], reloader["args"][1::2], strict=True))
    config = render().one("ConfigMap", "ioa-nats")["data"]["nats.conf"]
    assert (options["-pid"], pod["shareProcessNamespace"]) == (re.findall(r"(?m)^pid_file: (.+)$", config)[0], True)
    assert "include authorization/authorization.conf" in config
    mounted = {one["name"]: one["mountPath"] for one in reloader["volumeMounts"]}
    assert options["-config"] == f"{mounted['authorization']}/authorization.conf"
    assert mounted.items() <= {one["name"]: one["mountPath"] for one in nats["volumeMounts"]}.items()


async def test_a_revoked_key_is_refused_after_a_reload(tmp_path: Path) -> None:
    """SIGHUP makes nats-server read the authorization again, as the chart includes it."""
    rendered = await asyncio.to_thread(render, {"nats": {"replicas": 1}})
    async with open_nodes(tmp_path, rendered) as cluster:
        first, second = (cluster.settings("ioa-calculator-nats", f"ioa-calculator-{number}") for number in (1, 2))
        await eventually(lambda: is_let_in(first), within=_PATIENCE)
        store = FolderSecrets(cluster.secrets)
        roster = await asyncio.to_thread(load_roster, store, _AUTHORIZATION)
        without = roster.remove(roster.find(None, "calculator-1"))
        await asyncio.to_thread(write_roster, store, _AUTHORIZATION, without)
        os.kill(int(await asyncio.to_thread((tmp_path / "nats.pid").read_text)), signal.SIGHUP)

        async def is_refused() -> bool:
            return not await is_let_in(first)

        await eventually(is_refused, within=_PATIENCE)
        assert await is_let_in(second)


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
            with pytest.raises(UnavailableError, match=r"is not trusted") as refused:
                async with open_connection(stranger, patience=timedelta(seconds=1)):
                    pass
            assert refused.value.hint == "Set IOA_NATS_CA to the certificate of its authority."

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
