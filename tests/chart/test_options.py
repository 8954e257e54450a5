"""Every option does what its comment says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chart.rendering import Rendered, environment_of, render

pytestmark = pytest.mark.chart

_WORKLOADS = (
    ("Deployment", "ioa-router"),
    ("StatefulSet", "ioa-calculator"),
    ("StatefulSet", "ioa-nats"),
    ("StatefulSet", "ioa-qdrant"),
)
_GIVEN_CERTIFICATE: Mapping[str, Any] = {"tls": {"existingSecret": "t"}}  # without a cluster to ask, helm makes another each time


def test_value_for_all_workloads_reaches_each_workload() -> None:
    """Each key of `workloads` is in services, pools, NATS and Qdrant."""
    pod = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "runtimeClassName": "gvisor",
        "hostUsers": False,
        "initContainers": [{"name": "before"}],
        "terminationGracePeriodSeconds": 99,
    }
    container = {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}}, "envFrom": [{"secretRef": {"name": "more"}}]}
    given = {**pod, "lifecycle": container["lifecycle"], "extraEnvFrom": container["envFrom"]}
    rendered = render({"workloads": given, "qdrant": {"enabled": True}})
    for kind, name in _WORKLOADS:
        spec = rendered.one(kind, name)["spec"]["template"]["spec"]
        assert (name, {**spec, **pod}, {**spec["containers"][0], **container}) == (name, spec, spec["containers"][0])


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

    told = {"IOA_LEASE": "21", "IOA_MAX_DEPTH": "1", "IOA_LEADERS": "writer,star", "IOA_KEEP": "P7D"}
    assert environment.items() >= {**told, "IOA_RATE": "70", "IOA_QUOTA_GOALS": "30"}.items()


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
