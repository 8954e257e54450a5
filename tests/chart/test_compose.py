"""deploy/compose.yaml without Docker: its names, and the credentials that its own command creates."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from ioa.adapters.nats.wire.embedded_server import find_nats_server
from ioa.cli.credentials import create
from ioa.cli.output.terminal import Terminal
from tests.rig.deadline import eventually
from tests.rig.ports import held_ports

pytestmark = pytest.mark.chart

_ROOT = Path(__file__).parents[2]
_FILE: dict[str, Any] = yaml.safe_load((_ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
_SERVICES: dict[str, dict[str, Any]] = _FILE["services"]


def _credentials(folder: Path) -> Path:
    """Create the credentials of the service `credentials`."""
    options = [option.removeprefix("--").split("=") for option in shlex.split(_SERVICES["credentials"]["command"]) if "=" in option]
    names: dict[str, Any] = {role: [name for option, name in options if option == role] for role in ("pool", "user")}
    create(Terminal(as_json=True), out=folder, **names)
    return folder


def _mounted_folder(service: dict[str, Any], target: str = "/credentials") -> str:
    mounted = {one["target"]: one for one in service["volumes"] if isinstance(one, dict)}
    return str(mounted[target]["volume"]["subpath"])


@pytest.mark.parametrize("name", list(_SERVICES))
def test_container_has_no_privileges_and_a_bounded_log(name: str) -> None:
    """Read-only root, no capability, no root user, and at most three files of log."""
    service = _SERVICES[name]
    rights = (service["read_only"], service["cap_drop"], service["security_opt"], service.get("user", "65532:65532"))
    assert rights == (True, ["ALL"], ["no-new-privileges:true"], "65532:65532")
    assert service["logging"]["options"] == {"max-size": "20m", "max-file": "3"}


@pytest.mark.parametrize("name", [name for name, service in _SERVICES.items() if "IOA_NATS_SEED" in service.get("environment", {})])
def test_container_reads_only_its_own_seed(name: str, tmp_path: Path) -> None:
    """The mounted folder contains the named seed and no other file."""
    service = _SERVICES[name]
    folder = _credentials(tmp_path) / _mounted_folder(service)
    seed = Path(service["environment"]["IOA_NATS_SEED"])
    assert [file.name for file in folder.iterdir()] == [seed.relative_to("/credentials").name]
    assert _mounted_folder(service) == ("user" if name == "ioa" else name)


def test_agent_reaches_nats_and_no_service() -> None:
    """Agents have a network of their own with NATS."""
    networks = {name: set(service["networks"]) for name, service in _SERVICES.items() if "network_mode" not in service}
    assert {name for name, own in networks.items() if "agents" in own} == {"nats", "calculator"}
    assert networks["calculator"] == {"agents"} and networks["nats"] == {"agents", "control"}


async def test_nats_server_accepts_the_configuration_and_reports_its_health(tmp_path: Path) -> None:
    """nats-server starts with the configuration and the credentials of Compose, and answers on the path of the health check."""
    with held_ports(2) as (port, monitor):
        async with _nats(tmp_path, port, monitor), httpx.AsyncClient() as http:
            where = str(_SERVICES["nats"]["healthcheck"]["test"][-1]).replace("8222", str(monitor))

            async def status() -> int:
                try:
                    return (await http.get(where)).status_code
                except httpx.TransportError:
                    return 0

            assert await eventually(status, within=timedelta(seconds=30)) == 200


@asynccontextmanager
async def _nats(folder: Path, port: int, monitor: int) -> AsyncIterator[None]:
    """Run nats-server as the container `nats` does, with folders and ports of this machine."""
    here = {
        "/etc/nats": str(folder / "etc"),
        "/data": str(folder / "data"),
        ":4222": f":{port}",
        ":8222": f":{monitor}",
        "0.0.0.0": "127.0.0.1",
    }

    def on_this_machine(text: str) -> str:
        for there, place in here.items():
            text = text.replace(there, place)
        return text

    def lay_out() -> None:
        [mounted] = [one for one in _SERVICES["nats"]["volumes"] if isinstance(one, dict)]
        (folder / "etc").mkdir()
        made = _credentials(folder / "credentials") / mounted["volume"]["subpath"]
        Path(on_this_machine(mounted["target"])).symlink_to(made)
        (folder / "etc" / "nats.conf").write_text(on_this_machine(_FILE["configs"]["nats"]["content"]), encoding="utf-8")

    await asyncio.to_thread(lay_out)
    command = [on_this_machine(argument) for argument in _SERVICES["nats"]["command"]]
    process = await asyncio.create_subprocess_exec(str(find_nats_server()), *command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
