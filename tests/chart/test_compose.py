"""deploy/compose.yaml as far as it can be judged without Docker: by what it names, and by what its own commands make."""

from __future__ import annotations

import asyncio
import shlex
import stat
import subprocess
import sys
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
from ioa.hosting.credentials import ASKED, ISSUER, REVOKED
from tests.rig.deadline import eventually
from tests.rig.ports import held_ports

pytestmark = pytest.mark.chart

_ROOT = Path(__file__).parents[2]
_FILE: dict[str, Any] = yaml.safe_load((_ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
_SERVICES: dict[str, dict[str, Any]] = _FILE["services"]
_RUN_IOA = {name: service for name, service in _SERVICES.items() if service["image"].startswith("localhost/ioa/")}


def _options(name: str) -> list[str]:
    # Compose takes such a command apart as a shell does, with variables for which nothing stands here.
    command = shlex.split(_SERVICES["credentials"]["command"].partition("${")[0])
    return [option.partition("=")[2] for option in command if option.startswith(f"--{name}=")]


def _credentials(folder: Path) -> Path:
    """Make what the service `credentials` makes."""
    names: dict[str, Any] = {role: _options(role) for role in ("pool", "user", "observer", "admin")}
    create(Terminal(as_json=True), out=folder, callout=True, **names)
    return folder


def _part_of_credentials(service: dict[str, Any]) -> str:
    mounted = {one["target"]: one for one in service["volumes"] if isinstance(one, dict) and one["source"] == "credentials"}
    return str(mounted["/credentials"]["volume"]["subpath"])


@pytest.mark.parametrize("name", [name for name in _SERVICES if name != "volumes"])
def test_every_container_is_confined_and_its_log_is_bounded(name: str) -> None:
    """It has a read-only root, no capabilities, no way to gain privileges, and few files of log."""
    service = _SERVICES[name]
    posture = (service["read_only"], service["cap_drop"], service["security_opt"], service.get("user", "65532:65532"))
    assert posture == (True, ["ALL"], ["no-new-privileges:true"], "65532:65532")
    assert service["logging"]["options"] == {"max-size": "20m", "max-file": "3"}


@pytest.mark.parametrize("name", [name for name, service in _RUN_IOA.items() if "IOA_NATS_SEED" in service.get("environment", {})])
def test_everybody_finds_the_seed_that_is_made_for_it(name: str, tmp_path: Path) -> None:
    """The folder that is mounted and the file that is named are there after the credentials were made, for this service alone."""
    service = _SERVICES[name]
    folder = _credentials(tmp_path) / _part_of_credentials(service)
    seed = Path(service["environment"]["IOA_NATS_SEED"])
    assert [file.name for file in folder.iterdir()] == [seed.relative_to("/credentials").name]
    assert _part_of_credentials(service) == ("user" if name == "ioa" else name)


def test_agents_reach_nothing_but_nats() -> None:
    """Agents share a network with NATS only, and neither with the control plane nor with Qdrant."""
    networks = {name: set(service.get("networks", ())) for name, service in _SERVICES.items() if "network_mode" not in service}
    agents = {name for name, on in networks.items() if "agents" in on}
    assert agents == {"nats", "calculator", "text-analyst"}
    assert networks["nats"] == set(_FILE["networks"]) == {"control", "agents"}
    assert all(on == {"control"} for name, on in networks.items() if name not in agents)


def test_admins_and_tokens_are_let_in_only_if_a_variable_is_set(tmp_path: Path) -> None:
    """The callout starts only by a profile, and finds at its paths what `--callout` makes."""
    service, folder = _SERVICES["authcallout"], _credentials(tmp_path)
    command = _SERVICES["credentials"]["command"]
    mounted = {one["target"]: folder / one["volume"]["subpath"] for one in service["volumes"]}
    keys, authorization = (Path(service["environment"][f"IOA_CALLOUT_{name}"]) for name in ("KEYS", "ROSTER"))
    assert (_options("admin"), "${ADMIN:+--admin=admin}" in command, "${CALLOUT:+--callout}" in command) == ([], True, True)
    assert service["profiles"] == ["callout"]
    assert {file.name for file in mounted[str(keys)].iterdir()} == {ASKED, ISSUER, REVOKED}
    assert (mounted[str(authorization.parent)] / authorization.name).is_file()


def test_qdrant_asks_for_a_key_that_only_discovery_shares(tmp_path: Path) -> None:
    """It is made once, for its owner's eyes, and both read it off the file that they mount."""
    [script] = _SERVICES["qdrant-key"]["command"]
    made = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script.replace("/credentials", str(tmp_path))], check=True)
        made.append((tmp_path / "qdrant" / "api-key").read_text(encoding="ascii"))
    readers = {
        name
        for name, service in _SERVICES.items()
        for one in service.get("volumes", ())
        if isinstance(one, dict) and one["source"] == "credentials" and one["volume"]["subpath"] == "qdrant"
    }
    assert (made[0] == made[1], len(made[0]) >= 40, readers) == (True, True, {"qdrant", "discovery"})
    assert stat.S_IMODE((tmp_path / "qdrant" / "api-key").stat().st_mode) == 0o600
    assert "$$(cat /key/api-key)" in _SERVICES["qdrant"]["entrypoint"][-1]
    assert _SERVICES["discovery"]["environment"]["IOA_QDRANT_API_KEY_FILE"] == "/key/api-key"


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
