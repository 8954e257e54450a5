"""Pods of the chart as processes of this machine: their commands and variables, with this machine's folders and addresses."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.chart.nats_nodes import Cluster
from tests.chart.rendering import CHART, Manifest, Rendered, environment_of, main_container

_ROOT = CHART.parents[1]


@dataclass(frozen=True)
class PodProcess:
    """One pod of a Deployment or StatefulSet, or a Pod, that runs here."""

    name: str
    process: asyncio.subprocess.Process

    async def end(self) -> int:
        """Tell it to end, as Kubernetes does, and return its exit code."""
        self.process.terminate()
        return await self.process.wait()


@asynccontextmanager
async def open_pod(
    rendered: Rendered, manifest: Manifest, folder: Path, cluster: Cluster, port: int | None, http: int = 0
) -> AsyncIterator[PodProcess]:
    """Run the first pod of a manifest until the block ends.

    Args:
        rendered: Where its ConfigMap is found.
        manifest: What it is a pod of.
        folder: Holds its volumes.
        cluster: The NATS it connects to.
        port: Where it serves metrics and probes.
        http: Where the gateway is.
    """
    container = main_container(manifest)
    command = [*container["command"], *container.get("args", ())]
    name = str(manifest["metadata"]["name"])
    environment = await asyncio.to_thread(_environment, rendered, manifest, folder, cluster, port, http)
    with (folder / f"{name}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable if word == "python3" else str(word) for word in command),
            cwd=_ROOT, env=environment, stdout=asyncio.subprocess.PIPE if manifest["kind"] == "Pod" else log, stderr=log,
        )  # fmt: skip
        try:
            yield PodProcess(name, process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def _environment(
    rendered: Rendered, manifest: Manifest, folder: Path, cluster: Cluster, port: int | None, http: int
) -> Mapping[str, str]:
    name = manifest["metadata"]["name"]
    is_agent = manifest["kind"] == "StatefulSet"
    pod = f"{name}-0" if is_agent else name
    spec = manifest["spec"] if manifest["kind"] == "Pod" else manifest["spec"]["template"]["spec"]
    secrets = {one["name"]: one["secret"]["secretName"] for one in spec["volumes"] if "secret" in one}
    if is_agent:
        (folder / f"{name}.json").write_text(rendered.one("ConfigMap", name)["data"]["card.json"])
    here = {
        "IOA_NATS_URL": cluster.url,
        "IOA_NATS_SEED": str(cluster.secrets / secrets["credentials"] / (pod if is_agent else "seed")),
        "IOA_NATS_CA": str(cluster.authority),
        "IOA_CARD": str(folder / f"{name}.json"),
        "IOA_AGENT_DATA": str(folder / f"{name}-data"),
        "IOA_VECTORS_FOLDER": str(folder / f"{name}-index"),
        "IOA_METRICS_PORT": str(port),
        "IOA_REPLICA": pod,
        "IOA_HTTP_ADDRESS": "127.0.0.1",
        "GATEWAY": f"http://127.0.0.1:{http}",
    }
    told = {key: here.get(key, value) for key, value in environment_of(manifest).items()}
    told |= {"IOA_HTTP_PORT": str(http)} if "IOA_HTTP_URLS" in told else {}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{_ROOT / 'libs'}:{_ROOT / 'services'}", **told}
