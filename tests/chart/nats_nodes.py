"""nats-server as the chart configures it, but on this machine, with the credentials that the chart's Job makes."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.adapters.nats.wire.embedded_server import find_nats_server
from ioa.adapters.secret_stores.folder import FolderSecrets
from ioa.hosting.cluster_credentials import Plan, make_credentials
from tests.chart.rendering import Rendered, main_container
from tests.rig.ports import held_ports


@dataclass(frozen=True)
class Cluster:
    """Nodes as the chart configures them, but on this machine: where clients and monitors connect, and where the seeds lie."""

    url: str
    monitors: Sequence[str]
    secrets: Path
    authority: Path | None = None

    def settings(self, secret: str, key: str = "seed") -> NatsSettings:
        """The settings of whoever has this seed."""
        return NatsSettings(self.url, secret, seed=str(self.secrets / secret / key), ca=str(self.authority or ""))


@asynccontextmanager
async def open_nodes(folder: Path, rendered: Rendered) -> AsyncIterator[Cluster]:
    """Run the chart's configuration, with the addresses and folders of this machine in place of a pod's.

    With TLS the certificates are those that helm made, or else those in `folder / "tls"`.
    """
    tls = folder / "tls"
    if rendered.has("Secret", "ioa-nats-tls"):
        await asyncio.to_thread(_write, rendered.one("Secret", "ioa-nats-tls")["data"], tls)
    nodes = int(rendered.one("StatefulSet", "ioa-nats")["spec"]["replicas"])
    config = rendered.one("ConfigMap", "ioa-nats")["data"]["nats.conf"]
    told = {one["name"]: one["value"] for one in main_container(rendered.one("StatefulSet", "ioa-nats"))["env"] if "value" in one}
    plan = json.loads(rendered.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])
    async with AsyncExitStack() as stack:
        ports = stack.enter_context(held_ports(3 * nodes))
        plan["routes"] = [f"127.0.0.1:{port}" for port in ports[nodes : 2 * nodes]]
        await asyncio.to_thread(make_credentials, Plan.model_validate(plan), FolderSecrets(folder / "secrets"))
        for number in range(nodes):
            client, route, monitor = ports[number::nodes]
            here = {
                "0.0.0.0:4222": f"127.0.0.1:{client}",
                "0.0.0.0:6222": f"127.0.0.1:{route}",
                "0.0.0.0:8222": f"127.0.0.1:{monitor}",
                "127.0.0.1:8222": f"127.0.0.1:{monitor}",
                "/data": str(folder / f"data-{number}"),
                "/var/run/nats": str(folder),
                "/etc/nats/tls": str(tls),
            }
            await stack.enter_async_context(_node(folder / f"node-{number}", config, here, folder / "secrets", told))
        authority = tls / "ca.crt" if tls.exists() else None
        urls = ",".join(f"{'tls' if authority else 'nats'}://127.0.0.1:{port}" for port in ports[:nodes])
        monitors = [f"http://127.0.0.1:{port}" for port in ports[2 * nodes :]]
        yield Cluster(urls, monitors, folder / "secrets", authority)


def _write(data: Mapping[str, str], folder: Path) -> None:
    folder.mkdir()
    for name, encoded in data.items():
        (folder / name).write_bytes(b64decode(encoded))


@asynccontextmanager
async def _node(folder: Path, config: str, here: Mapping[str, str], secrets: Path, told: Mapping[str, str]) -> AsyncIterator[None]:
    for there, place in here.items():
        config = config.replace(there, place)
    await asyncio.to_thread(_lay_out, folder, config, secrets)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(find_nats_server()), "--config", str(folder / "nats.conf"), stdout=log, stderr=log,
            env={**os.environ, **told, "POD_NAME": f"ioa-nats-{folder.name.rpartition('-')[2]}"},
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
