"""What a real Kubernetes says of the chart, without installing it: only when KUBECONFIG names one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import CHART, CI, CUSTOM_KINDS, Manifest, render, tool

pytestmark = [pytest.mark.chart, pytest.mark.skipif("KUBECONFIG" not in os.environ, reason="KUBECONFIG names no cluster")]

_NAMESPACE = "ioa-chart-check"


@pytest.fixture(scope="module")
def version() -> str:
    """The cluster's version."""
    found: str = json.loads(_kubectl("version", "--output", "json"))["serverVersion"]["gitVersion"]
    return found


@pytest.fixture(scope="module", autouse=True)
def namespace() -> Iterator[None]:
    """A namespace of its own, which enforces the restricted standard where the cluster can."""
    # Nothing is ever created in it, so that its name may be fixed.
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    _kubectl(
        "apply",
        "--filename",
        "-",
        given={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE, "labels": labels}},
    )
    yield
    _kubectl("delete", "namespace", _NAMESPACE, "--wait=false")


@pytest.mark.parametrize("values", [CHART / "values.yaml", *CI], ids=lambda path: path.stem)
def test_the_api_server_would_take_every_manifest(values: Path, version: str) -> None:
    """A dry run on the server checks what no schema says: names, selectors, mounts, and its admission."""
    rendered = render(values, kubernetes=version)
    foreign = {kind.rpartition("/")[2] for kind in CUSTOM_KINDS} | {"Issuer"}
    items = [_moved(one) for one in rendered.manifests if one["kind"] not in foreign]

    said = _kubectl("apply", "--dry-run=server", "--filename", "-", given={"apiVersion": "v1", "kind": "List", "items": items})

    assert (len(said.splitlines()), "Warning" in said) == (len(items), False)


def _moved(manifest: Manifest) -> Manifest:
    """The manifest in the test's namespace, without the classes of pods, which a cluster has or has not."""
    moved: dict[str, Any] = json.loads(json.dumps(manifest).replace('"namespace": "agents"', f'"namespace": "{_NAMESPACE}"'))
    if moved["kind"] == "Pod":
        moved["spec"] = {key: value for key, value in moved["spec"].items() if key not in ("priorityClassName", "runtimeClassName")}
    return moved


def _kubectl(*arguments: str, given: Manifest | None = None) -> str:
    done = subprocess.run(
        [tool("kubectl"), *arguments], input=json.dumps(given) if given else "", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
