"""A release of the chart on the cluster that KUBECONFIG names, by helm and kubectl."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nats.aio.client import Client

from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.concurrency import beside

NAMESPACE, RELEASE = "ioa-e2e", "e2e"
FULL_NAME = f"{RELEASE}-ioa"

_ROOT = Path(__file__).parents[2]
_CHART, _VALUES = _ROOT / "helm" / "ioa", Path(__file__).parent
_LOAD = [_ROOT / "tests" / "rig" / f"{name}.py" for name in ("load_brain", "load_worker", "oracle")]
GATEWAY, TENANTS = "gateway.yaml", "tenants.yaml"
"""Files of values beside those of the first installation."""

_FORWARD_AGAIN_SECONDS = 0.5


class ToolError(AssertionError):
    """A command failed; the message holds what it said."""


async def run(*command: str, stdin: bytes | None = None, told: Mapping[str, str] = MappingProxyType({})) -> str:
    """Run a command to its end and return what it wrote; `told` is in its environment besides.

    Raises:
        ToolError: Its exit code is not 0.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **told},
    )
    try:
        output, errors = await process.communicate(stdin)
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        raise ToolError(f"{' '.join(command)}: {errors.decode(errors='replace').strip()[-2_000:]}")
    return output.decode(errors="replace")


async def kubectl(*arguments: str, stdin: bytes | None = None) -> str:
    """Run kubectl in the release's namespace."""
    return await run("kubectl", "--namespace", NAMESPACE, *arguments, stdin=stdin)


async def helm(*arguments: str) -> str:
    """Run helm in the release's namespace."""
    return await run("helm", "--namespace", NAMESPACE, *arguments)


async def apply_chart(*settings: str, beside: Sequence[str] = ()) -> None:
    """Install or upgrade the release with the test's values, and those files of values `beside`; wait until everything is ready."""
    own = [_VALUES / name for name in ("values.yaml", *beside)]
    files = [*own, *(Path(path) for path in os.environ.get("E2E_VALUES", "").split(",") if path)]
    values = [part for path in files for part in ("--values", str(path))]
    sets = [part for setting in settings for part in ("--set", setting)]
    sets += [part for path in _LOAD for part in ("--set-file", f"extraObjects[0].data.{path.stem}\\.py={path}")]
    await helm("upgrade", "--install", RELEASE, str(_CHART), "--create-namespace", *values, *sets, "--wait", "--timeout", "5m")


async def pods(component: str | None = None) -> list[dict[str, Any]]:
    """The pods of the release, or of one of its components, that were not told to end."""
    selector = f"app.kubernetes.io/instance={RELEASE}" + (f",app.kubernetes.io/component={component}" if component else "")
    found = json.loads(await kubectl("get", "pods", "--selector", selector, "--output", "json"))["items"]
    return [
        pod for pod in found if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]


def name_of(pod: dict[str, Any]) -> str:
    """The name of a pod."""
    return str(pod["metadata"]["name"])


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod says that it is ready."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def restarts(found: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How often the containers of each pod were started again."""
    return {name_of(pod): sum(one["restartCount"] for one in pod["status"].get("containerStatuses", [])) for pod in found}


async def scale(component: str, replicas: int) -> None:
    """Scale a StatefulSet of the release, as an operator does."""
    await kubectl("scale", "statefulset", f"{FULL_NAME}-{component}", f"--replicas={replicas}")


async def without_ties(component: str) -> None:
    """Wait until a StatefulSet has as many ready pods as it should."""
    await kubectl("rollout", "status", f"statefulset/{FULL_NAME}-{component}", "--timeout=180s")


async def read_file(pod: str, program: str) -> bytes:
    """Run a Python program in a pod that writes bytes in base64, and return them."""
    return base64.b64decode(await kubectl("exec", pod, "--", "python3", "-c", program))


async def seed_of(name: str, key: str = "seed") -> str:
    """What a service, a user, or by the name of its key an agent of a pool, shows to the release's NATS now."""
    return (await _secret(f"{FULL_NAME}-{name}-nats"))[key].decode("ascii")


@asynccontextmanager
async def open_way(user: str) -> AsyncIterator[NatsSettings]:
    """A way to the release's NATS as one of its users, such as `admin` or a tenant's `acme-anna`."""
    seed = await seed_of(user)
    authority = (await _secret(f"{FULL_NAME}-nats-tls"))["ca.crt"]
    with tempfile.NamedTemporaryFile() as ca:
        ca.write(authority)
        ca.flush()
        async with open_tunnel("nats", 4222) as port:
            yield NatsSettings(f"tls://127.0.0.1:{port}", "e2e", seed=seed, ca=ca.name)


@asynccontextmanager
async def open_nats(user: str) -> AsyncIterator[Client]:
    """Connect to the release's NATS as one of its users."""
    async with open_way(user) as settings, open_connection(settings) as client:
        yield client


async def ioa(way: NatsSettings, *arguments: str) -> str:
    """Run the command `ioa` on this machine, as an operator does, and return what it wrote to its standard output.

    Raises:
        ToolError: Its exit code is not 0.
    """
    told = {"IOA_NATS_URL": way.url, "IOA_NATS_SEED": str(way.seed), "IOA_NATS_CA": str(way.ca)}
    return await run(sys.executable, "-m", "ioa.cli", *arguments, told=told)


@asynccontextmanager
async def open_tunnel(component: str, port: int) -> AsyncIterator[int]:
    """Yield a port of this machine that leads to one of a component's Service. The tunnel is dug again whenever it breaks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        here = int(free.getsockname()[1])
    async with beside(_forward(f"service/{FULL_NAME}-{component}", f"{here}:{port}")):
        yield here


async def _secret(name: str) -> dict[str, bytes]:
    encoded = json.loads(await kubectl("get", "secret", name, "--output", "json"))["data"]
    return {key: base64.b64decode(value) for key, value in encoded.items()}


async def _forward(target: str, ports: str) -> None:
    while True:
        process = await asyncio.create_subprocess_exec(
            *("kubectl", "--namespace", NAMESPACE, "port-forward", target, ports),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await process.wait()
            await asyncio.sleep(_FORWARD_AGAIN_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
