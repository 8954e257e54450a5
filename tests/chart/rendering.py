"""Rendering the chart with the real helm, and finding things in what comes out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ioa.hosting.cluster_credentials import Plan

CHART = Path(__file__).parents[2] / "helm" / "ioa"
CI = sorted((CHART / "ci").glob("*.yaml"))
SETS_OF_VALUES = [CHART / "values.yaml", *CI]
MINORS = ("1.29", "1.31", "1.33", "1.35", "1.37")
"""Of Kubernetes: what is still around, and the newest that there are schemas for."""
OLDEST = "1.20"
CUSTOM_KINDS = ("keda.sh/v1alpha1/ScaledObject", "monitoring.coreos.com/v1/PodMonitor", "cert-manager.io/v1/Certificate")

Manifest = Mapping[str, Any]


def tool(name: str) -> str:
    """Find a command: beside this interpreter, else on the path."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found is not None, f"{name} is not installed: make test-all SUITE=chart does that"
    return found


class RefusedError(Exception):
    """Helm did not render; the message is its own."""


@dataclass(frozen=True)
class Rendered:
    """What came out, in order."""

    manifests: Sequence[Manifest]

    def all(self, kind: str) -> list[Manifest]:
        """Every manifest of a kind."""
        return [one for one in self.manifests if one["kind"] == kind]

    def one(self, kind: str, name: str) -> Manifest:
        """The manifest of a kind and name."""
        found = [one for one in self.all(kind) if one["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} of {kind}/{name}; there are {[one['metadata']['name'] for one in self.all(kind)]}"
        return found[0]

    def has(self, kind: str, name: str) -> bool:
        """Whether there is one."""
        return any(one["metadata"]["name"] == name for one in self.all(kind))

    def pods(self) -> Iterator[tuple[str, Manifest]]:
        """Every pod's spec, by the name of what it belongs to."""
        for one in self.manifests:
            name = f"{one['kind']}/{one['metadata']['name']}"
            if one["kind"] == "Pod":
                yield name, one["spec"]
            elif one["kind"] in ("Deployment", "StatefulSet", "Job"):
                yield name, one["spec"]["template"]["spec"]


def render(
    values: Mapping[str, Any] | Path | None = None,
    *,
    kubernetes: str = MINORS[-1],
    custom_kinds: Sequence[str] = CUSTOM_KINDS,
    chart: Path = CHART,
) -> Rendered:
    """Render the chart for the release `ioa` in the namespace `agents`.

    Raises:
        RefusedError: Helm refuses the values.
    """
    given = values.read_text() if isinstance(values, Path) else json.dumps(values or {})
    return Rendered(_render(given, kubernetes, tuple(custom_kinds), chart))


@lru_cache(maxsize=256)
def _render(values: str, kubernetes: str, custom_kinds: tuple[str, ...], chart: Path) -> tuple[Manifest, ...]:
    command = [tool("helm"), "template", "ioa", str(chart), "--values", "-"]
    command += ["--namespace", "agents", "--kube-version", kubernetes, "--api-versions", ",".join(custom_kinds)]
    # Without a cluster of the caller's: what is rendered depends on the values alone.
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    done = subprocess.run(command, input=values, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RefusedError(done.stderr)
    return tuple(one for one in yaml.safe_load_all(done.stdout) if one)


def main_container(manifest: Manifest) -> Manifest:
    """The first container of a Deployment, StatefulSet, Job or Pod."""
    spec = manifest["spec"] if manifest["kind"] == "Pod" else manifest["spec"]["template"]["spec"]
    container: Manifest = spec["containers"][0]
    return container


def environment_of(manifest: Manifest) -> dict[str, Any]:
    """The main container's variables: the value, or where it comes from."""
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in main_container(manifest)["env"]}


def plan_of(rendered: Rendered, config_map: str = "ioa-credentials") -> Plan:
    """What the Job is told to make."""
    return Plan.model_validate_json(rendered.one("ConfigMap", config_map)["data"]["plan.json"])
