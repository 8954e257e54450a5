"""Pods of the tests' own beside the release, which reach it as any pod of the cluster does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.k8s.release import FULL_NAME, is_ready, kubectl
from tests.rig.deadline import eventually

_PROGRAMS = Path(__file__).parent / "in_pod"
_STARTED_WITHIN = timedelta(minutes=2)


@dataclass(frozen=True)
class Visitor:
    """A pod that runs one of the programs of `in_pod`.

    Attributes:
        name: The pod's.
        address: Its IP address in the cluster.
    """

    name: str
    address: str

    async def said(self) -> list[dict[str, Any]]:
        """What it has written so far, line by line.

        Raises:
            ToolError: Its log cannot be read.
        """
        # The last line may be half written.
        whole = (await kubectl("logs", self.name)).rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]


@dataclass(frozen=True)
class Given:
    """A key of a Secret of the release."""

    secret: str
    key: str


@asynccontextmanager
async def open_visitor(
    program: str, given: Mapping[str, Given] = MappingProxyType({}), **environment: str
) -> AsyncIterator[Visitor]:
    """Run a program in a pod, on the image of the services, for as long as the block; what is given lies in /given."""
    name = f"e2e-{Path(program).stem.replace('_', '-')}"
    image = await kubectl(
        *("get", "deployment", f"{FULL_NAME}-router", "--output", "jsonpath={.spec.template.spec.containers[0].image}")
    )
    source = (_PROGRAMS / program).read_text(encoding="utf-8")
    await kubectl("apply", "--filename", "-", stdin=json.dumps(_pod(name, image, source, given, environment)).encode())
    try:
        pod = await eventually(lambda: _state_of(name), is_ready, within=_STARTED_WITHIN)
        yield Visitor(name, str(pod["status"]["podIP"]))
    finally:
        await kubectl("delete", "pod", name, "--grace-period", "1")


async def _state_of(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads(await kubectl("get", "pod", name, "--output", "json"))
    return pod


def _pod(name: str, image: str, source: str, given: Mapping[str, Given], environment: Mapping[str, str]) -> dict[str, object]:
    """A pod that fits the Pod Security Standard "restricted"."""
    container = {
        "name": "visitor",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", source],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "given", "mountPath": "/given", "readOnly": True}],
    }
    sources = [{"secret": {"name": one.secret, "items": [{"key": one.key, "path": path}]}} for path, one in given.items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "ioa-e2e", f"{FULL_NAME}-nats-client": "true"}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "given", "projected": {"sources": sources}}],
        },
    }
