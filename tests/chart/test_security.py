"""The security of everything the chart runs, by default and with each set of values; the golden manifests show the rest."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ioa.adapters.ssrf import CLOUDS, is_public
from tests.chart.rendering import SETS_OF_VALUES, Manifest, Rendered, environment_of, plan_of, render

pytestmark = pytest.mark.chart

_CASES = pytest.mark.parametrize("values", SETS_OF_VALUES, ids=lambda path: path.stem)
_SEED = re.compile(r"SU[A-Z2-7]{56}")
_RESTRICTED_VOLUMES = {"configMap", "emptyDir", "secret", "persistentVolumeClaim", "projected"}


@_CASES
def test_every_pod_fits_the_restricted_standard(values: Path) -> None:
    """Pods start in a namespace that enforces the Pod Security Standard "restricted"."""
    for name, pod in render(values).pods():
        context = pod["securityContext"]
        assert (name, context["runAsNonRoot"], context["seccompProfile"]) == (name, True, {"type": "RuntimeDefault"})
        assert [key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)] == []
        assert {key for volume in pod["volumes"] for key in volume} - {"name"} <= _RESTRICTED_VOLUMES


@_CASES
def test_every_container_is_confined(values: Path) -> None:
    """No root, no capability, nothing to write but its volumes, and a limit of memory."""
    for name, one in _containers(render(values)):
        context = one["securityContext"]
        confined = [context[key] for key in ("allowPrivilegeEscalation", "privileged", "readOnlyRootFilesystem", "capabilities")]
        assert (name, confined) == (name, [False, False, True, {"drop": ["ALL"]}])
        assert one["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in one["resources"]["limits"]


@_CASES
def test_only_the_job_that_makes_credentials_can_ask_kubernetes(values: Path) -> None:
    """No service and no agent has a token, and the Job reads and changes by name only the Secrets that it makes."""
    rendered = render(values)
    jobs = {name for name, _ in rendered.pods() if name.startswith("Job/") and name.endswith("-credentials")}

    assert {name for name, pod in rendered.pods() if pod["automountServiceAccountToken"]} == jobs
    assert all(one["automountServiceAccountToken"] is False for one in rendered.all("ServiceAccount"))
    assert len(rendered.all("Role")) == len(jobs)
    for role in rendered.all("Role"):
        plan = plan_of(rendered, role["metadata"]["name"])
        made = {*plan.secrets, plan.authorization, *([plan.callout] if plan.callout else [])}
        assert [rule["verbs"] for rule in role["rules"]] == [["create"], ["get", "patch"]]
        assert set(role["rules"][1]["resourceNames"]) == made


@_CASES
def test_no_secret_stands_in_a_manifest(values: Path) -> None:
    """Seeds and keys are read from Secrets; helm makes only NATS's certificate."""
    rendered = render(values)

    assert {one["metadata"]["name"].rpartition("-")[2] for one in rendered.all("Secret")} <= {"tls"}
    assert _SEED.findall(json.dumps(rendered.manifests)) == []


@_CASES
def test_a_network_policy_limits_every_pod_in_both_directions(values: Path) -> None:
    """Unless policies are turned off. Only metrics and the gateway are open to every pod of the cluster."""
    rendered = render(values)
    policies = rendered.all("NetworkPolicy")
    if values.stem == "without-volumes":
        assert policies == []
        return

    pods = {_component(one) for one in rendered.manifests if "template" in one.get("spec", {})}
    selected = {policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for policy in policies}
    assert selected == pods | {"test"}
    assert {tuple(policy["spec"]["policyTypes"]) for policy in policies} == {("Ingress", "Egress")}
    for policy in policies:
        rules = policy["spec"].get("ingress", ())
        open_to_all = {port["port"] for rule in rules if not rule.get("from") for port in rule["ports"]}
        assert open_to_all <= ({"metrics", "http"} if _component(policy) == "gateway" else {"metrics"})


_PLACES = [
    "93.184.215.14", "2606:4700::1111",
    "10.96.0.1", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.31.0.1", "192.168.1.1", "198.18.0.1",
    "224.0.0.1", "255.255.255.255", "::1", "fd00:ec2::254", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1",
]  # fmt: skip


def test_webhooks_and_models_reach_nothing_inside_and_no_keys_of_clouds() -> None:
    """The policy of the gateway lets through what the gateway itself would; no rule leads to where clouds serve machines' keys."""
    model = {"baseUrl": "https://models.example.com/v1", "name": "large"}
    rendered = render({"gateway": {"enabled": True}, "model": model})
    of_model, of_webhooks = (
        rendered.one("NetworkPolicy", f"ioa-{name}")["spec"]["egress"][-1] for name in ("calculator", "gateway")
    )
    assert "IOA_WEBHOOKS_INSIDE" not in environment_of(rendered.one("Deployment", "ioa-gateway"))
    assert of_webhooks["ports"] == [{"port": 443, "protocol": "TCP"}]
    assert [place for place in _PLACES if _leads_to(of_webhooks, place)] == list(filter(is_public, _PLACES)) == _PLACES[:2]
    served = [str(ipaddress.ip_network(cloud)[-1]) for cloud in CLOUDS]
    assert [place for place in served if _leads_to(of_model, place) or _leads_to(of_webhooks, place)] == []
    assert sorted(network for peer in of_model["to"] for network in peer["ipBlock"]["except"]) == sorted(CLOUDS)


def _leads_to(rule: Manifest, place: str) -> bool:
    def within(network: str) -> bool:
        return ipaddress.ip_address(place) in ipaddress.ip_network(network)

    blocks: list[dict[str, Any]] = [peer["ipBlock"] for peer in rule["to"]]
    return any(within(block["cidr"]) and not any(map(within, block["except"])) for block in blocks)


def _containers(rendered: Rendered) -> Iterator[tuple[str, Manifest]]:
    for name, pod in rendered.pods():
        for one in pod["containers"]:
            yield f"{name}/{one['name']}", one


def _component(manifest: Manifest) -> str:
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])
