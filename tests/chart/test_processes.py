"""A small release runs here without Kubernetes: every pod a process, with the commands, variables and credentials of the chart."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import yaml

from ioa.adapters.nats.wire.connection import open_connection
from ioa.client.client import Client
from ioa.runtime.control_plane import ControlPlaneSettings, open_topology
from tests.chart.nats_nodes import open_nodes
from tests.chart.pod_processes import open_pod
from tests.chart.rendering import CHART, Manifest, main_container, render
from tests.rig.ports import held_ports

pytestmark = [pytest.mark.chart, pytest.mark.slow]

_PATIENCE = timedelta(seconds=30)
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


async def test_a_release_does_what_helm_test_asks(tmp_path: Path) -> None:
    """The test's goal gets the right result, by NATS and by HTTP, probes answer, an agent has its pod's number, all end well."""
    small = yaml.safe_load((CHART / "ci" / "single-node.yaml").read_text())
    users = [{"name": "user", "role": "user"}, {"name": "boss", "role": "admin"}]
    gateway = {"gateway": {"enabled": True}, "credentials": {"users": users}}
    rendered = await asyncio.to_thread(render, {**small, **gateway})
    workloads = [*rendered.all("Deployment"), rendered.one("StatefulSet", "ioa-calculator")]
    async with AsyncExitStack() as stack:
        *ports, http = stack.enter_context(held_ports(len(workloads) + 1))
        cluster = await stack.enter_async_context(open_nodes(tmp_path, rendered))
        registry = await stack.enter_async_context(open_connection(cluster.settings("ioa-registry-nats"), patience=_PATIENCE))
        await stack.enter_async_context(open_topology(registry, ControlPlaneSettings()))
        pods = [
            await stack.enter_async_context(open_pod(rendered, workload, tmp_path, cluster, port, http))
            for workload, port in zip(workloads, ports, strict=True)
        ]
        test = await stack.enter_async_context(open_pod(rendered, rendered.one("Pod", "ioa-test"), tmp_path, cluster, None))
        said, _ = await test.process.communicate()
        by_http = rendered.one("Pod", "ioa-test-http")
        other = await stack.enter_async_context(open_pod(rendered, by_http, tmp_path, cluster, None, http))
        said_by_http, _ = await other.process.communicate()
        probed = [await _probe(workload, port) for workload, port in zip(workloads, ports, strict=True)]
        user = await stack.enter_async_context(open_connection(cluster.settings("ioa-user-nats"), patience=_PATIENCE))
        agents = [status.card.agent_id for status in await Client(user).agents(online_only=True)]
        ended = [await pod.end() for pod in pods]
        logs = await asyncio.to_thread(lambda: "".join(log.read_text() for log in tmp_path.glob("*.log")))

    assert (test.process.returncode, said.decode().splitlines()[-1]) == (0, "The result holds '36'.")
    assert (other.process.returncode, json.loads(said_by_http.decode().splitlines()[-2])["reason"]) == (0, "concluded")
    assert "permissions violation" not in logs
    assert (agents, probed, ended) == (["calculator-0"], [[200, 200, 200]] * len(pods), [0] * len(pods))


async def _probe(workload: Manifest, port: int) -> list[int]:
    paths = [main_container(workload)[probe]["httpGet"]["path"] for probe in _PROBES]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
        return [(await http.get(path)).status_code for path in paths]
