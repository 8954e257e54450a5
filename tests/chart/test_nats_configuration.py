"""A real nats-server runs what the chart configures, with the credentials that the chart's Job makes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from base64 import b64decode
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from ioa.adapters.nats.streams.topology import ensure_pool_consumer
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.errors import UnavailableError
from ioa.hosting.credential_store import load_roster, write_roster
from ioa.protocol.ids import PoolId
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from tests.chart.nats_nodes import Cluster, open_nodes
from tests.chart.rendering import Manifest, main_container, render, tool
from tests.rig.deadline import eventually
from tests.rig.letting_in import is_let_in

pytestmark = pytest.mark.chart

_AUTHORIZATION = "ioa-nats-authorization"
_PATIENCE = timedelta(seconds=30)


async def test_one_node_lets_in_holders_of_seeds_and_answers_probes_and_keda(tmp_path: Path) -> None:
    """An agent connects by its seed, and no client without one; KEDA finds a pool's queue by the names in its ScaledObject."""
    pool = {"name": "a", "target": "a.py:a", "autoscaling": {"enabled": True}}
    one_node = await asyncio.to_thread(render, {"nats": {"replicas": 1}})
    probing = main_container(one_node.one("StatefulSet", "ioa-nats"))
    [trigger] = (await asyncio.to_thread(render, {"agentPools": [pool]})).one("ScaledObject", "ioa-a")["spec"]["triggers"]
    wanted = trigger["metadata"]
    async with (
        open_nodes(tmp_path, one_node) as cluster,
        open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE) as registry,
        open_topology(registry, ControlPlaneSettings()),
        httpx.AsyncClient() as http,
    ):
        assert await is_let_in(cluster.settings("ioa-calculator-nats", "ioa-calculator-1"))
        assert not await is_let_in(NatsSettings(cluster.url, "nobody", ca=str(cluster.authority)))
        await ensure_pool_consumer(registry.jetstream(), PoolId("a"))
        probed = [await _probed(probing, f"{probe}Probe", cluster.monitors[0]) for probe in ("startup", "readiness", "liveness")]
        answer = (await http.get(f"{cluster.monitors[0]}/jsz?acc={wanted['account']}&consumers=true&config=true")).json()

    found = [
        (account["name"], stream["name"], consumer["name"])
        for account in answer["account_details"]
        for stream in account["stream_detail"]
        for consumer in stream.get("consumer_detail", ())
    ]
    assert (wanted["account"], wanted["stream"], wanted["consumer"]) in found
    assert probed == [[200], [200], [200]]


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
    """Its services, its nodes and a forwarded port."""
    made = b64decode(render().one("Secret", "ioa-nats-tls")["data"]["tls.crt"])
    shown = subprocess.run(
        [tool("openssl"), "x509", "-noout", "-text"], input=made, check=True, capture_output=True
    ).stdout.decode()
    assert "ASN1 OID: prime256v1" in shown, "a handshake with RSA costs the server 12 times as much"
    assert all(name in shown for name in ("DNS:ioa-nats.agents.svc", "DNS:*.ioa-nats-headless.agents.svc", "IP Address:127.0.0.1"))


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
