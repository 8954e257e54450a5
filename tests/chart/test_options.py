"""Every option does what its comment says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chart.rendering import Manifest, Rendered, environment_of, render

pytestmark = pytest.mark.chart

_WORKLOADS = (
    ("Deployment", "ioa-router"),
    ("StatefulSet", "ioa-calculator"),
    ("StatefulSet", "ioa-nats"),
    ("StatefulSet", "ioa-qdrant"),
)
_POD = ("spec", "template", "spec")
_GIVEN_CERTIFICATE: Mapping[str, Any] = {"tls": {"existingSecret": "t"}}  # without a cluster to ask, helm makes another each time


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("nodeSelector", {"disk": "ssd"}, ("nodeSelector",)),
        ("tolerations", [{"key": "a", "operator": "Exists"}], ("tolerations",)),
        ("affinity", {"nodeAffinity": {}}, ("affinity",)),
        ("priorityClassName", "high", ("priorityClassName",)),
        ("runtimeClassName", "gvisor", ("runtimeClassName",)),
        ("initContainers", [{"name": "before"}], ("initContainers",)),
        ("terminationGracePeriodSeconds", 99, ("terminationGracePeriodSeconds",)),
        ("lifecycle", {"preStop": {"exec": {"command": ["sleep", "1"]}}}, ("containers", 0, "lifecycle")),
        ("extraEnvFrom", [{"secretRef": {"name": "more"}}], ("containers", 0, "envFrom")),
    ],
)
@pytest.mark.parametrize(("kind", "name"), _WORKLOADS)
def test_what_holds_for_all_workloads_holds_for_each(
    kind: str, name: str, key: str, value: object, place: tuple[str | int, ...]
) -> None:
    """A key of `workloads` reaches services, pools, NATS and Qdrant."""
    values = {"workloads": {key: value}, "qdrant": {"enabled": True}}

    assert _at(render(values).one(kind, name), (*_POD, *place)) == value


def test_every_container_has_requests_and_a_limit_of_memory() -> None:
    """What a component says is put over what holds for all."""
    rendered = render(
        {"workloads": {"resources": {"limits": {"cpu": "2"}}}, "services": {"router": {"resources": {"limits": {"cpu": "4"}}}}}
    )

    limits = {name: pod["containers"][0]["resources"]["limits"] for name, pod in rendered.pods()}
    assert {
        name for name, pod in rendered.pods() if set(pod["containers"][0]["resources"]["requests"]) != {"cpu", "memory"}
    } == set()
    assert (limits["Deployment/ioa-router"], limits["Deployment/ioa-discovery"], limits["StatefulSet/ioa-calculator"]) == (
        {"cpu": "4", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "512Mi"},
    )  # fmt: skip


def test_the_control_plane_is_told_its_limits() -> None:
    """Each value becomes the variable that the services read."""
    environment = environment_of(
        render(
            {
                "controlPlane": {"leaseSeconds": 21, "maxDepth": 1, "leaders": ["writer", "star"], "keepDays": 7},
                "quotas": {"requests": {"perSecond": 70}, "goals": {"open": 30}},
            }
        ).one("Deployment", "ioa-groups")
    )

    assert {key: value for key, value in environment.items() if not key.startswith("IOA_NATS")} == {
        "IOA_LOG_LEVEL": "info", "IOA_METRICS_PORT": "9464", "IOA_METRICS_ADDRESS": "*",
        "IOA_REPLICAS": "3", "IOA_LEASE": "21", "IOA_RENEW_EVERY": "3",
        "IOA_FLOOR_TIMEOUT": "60", "IOA_TASK_LEASE": "30", "IOA_PAUSE_TIMEOUT": "600", "IOA_CONCLUSION_TIMEOUT": "60",
        "IOA_PATIENCE": "3600", "IOA_MAX_DEPTH": "1", "IOA_LEADERS": "writer,star", "IOA_KEEP": "P7D", "IOA_KEEP_AGENTS": "P90D",
        "IOA_RATE": "70", "IOA_BURST": "1000",
        "IOA_QUOTA_GOALS": "30", "IOA_QUOTA_GOALS_WAITING": "20000",
        "IOA_QUOTA_GROUP_TASKS": "256", "IOA_QUOTA_GROUP_LOG_BYTES": "64000000",
        "IOA_AGENT_FILES_BYTES": "256000000", "IOA_USER_FILES_BYTES": "1000000000",
        "IOA_STORE_BYTES": "8589934592",
    }  # fmt: skip


def _at(manifest: Manifest, place: tuple[str | int, ...]) -> Any:
    found: Any = manifest
    for step in place:
        found = found[step]
    return found


def test_a_rotation_reaches_the_job_and_restarts_who_has_to() -> None:
    """The Job is told whose keys to replace; NATS learns of them, and pods of a pool get theirs, by a restart; others go on."""
    rotated = render({**_GIVEN_CERTIFICATE, "credentials": {"rotate": {"id": "a", "of": ["router", "calculator"]}}})
    plain = render(_GIVEN_CERTIFICATE)

    plan = json.loads(rotated.one("ConfigMap", "ioa-credentials")["data"]["plan.json"])
    restarted = {name for name, pod in _annotations(rotated).items() if pod != _annotations(plain)[name]}
    assert plan["rotation"] == {"id": "a", "of": ["ioa-router-nats", "ioa-calculator-nats"], "ended": False}
    assert restarted == {"ioa-nats", "ioa-calculator"}


def _annotations(rendered: Rendered) -> dict[str, Mapping[str, str]]:
    workloads = [one for one in rendered.manifests if one["kind"] in ("Deployment", "StatefulSet")]
    return {one["metadata"]["name"]: one["spec"]["template"]["metadata"].get("annotations", {}) for one in workloads}
