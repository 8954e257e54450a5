"""The security of everything the chart runs, by default and with every set of values that is tried."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.rendering import CHART, CI, Manifest, Rendered, main_container, render

pytestmark = pytest.mark.chart

_CASES = pytest.mark.parametrize("values", [CHART / "values.yaml", *CI], ids=lambda path: path.stem)
_SETS_CONTAINERS_OF_ITS_OWN = {"before", "beside"}
"""Containers that a set of values adds, whose security is their author's."""
CI_OF_KEDA = next(path for path in CI if path.stem == "keda")
_SEED = re.compile(r"SU[A-Z2-7]{56}")
_RESTRICTED_VOLUMES = {"configMap", "emptyDir", "secret", "persistentVolumeClaim", "projected"}


@_CASES
def test_every_pod_fits_the_restricted_standard(values: Path) -> None:
    """Pods start in a namespace that enforces the Pod Security Standard "restricted"."""
    faults = [
        f"{name}: {fault}"
        for name, pod in render(values).pods()
        for fault in (
            *_wrong(pod["securityContext"], {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}),
            *(f"{key} is on" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)),
            *(f"volume {volume['name']}" for volume in pod["volumes"] if not set(volume) - {"name"} <= _RESTRICTED_VOLUMES),
        )
    ]

    assert faults == []


@_CASES
def test_every_container_is_confined(values: Path) -> None:
    """No root, no capability, no way up, and nothing to write but its volumes."""
    wanted = {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }

    assert [
        f"{name}: {fault}" for name, one in _containers(render(values)) for fault in _wrong(one["securityContext"], wanted)
    ] == []


@_CASES
def test_only_the_job_that_makes_credentials_can_ask_kubernetes(values: Path) -> None:
    """No service and no agent holds a token."""
    rendered = render(values)

    with_token = {name for name, pod in rendered.pods() if pod["automountServiceAccountToken"]}
    assert with_token <= {name for name, _ in rendered.pods() if name.startswith("Job/") and name.endswith("-credentials")}
    assert all(one["automountServiceAccountToken"] is False for one in rendered.all("ServiceAccount"))


def test_the_job_may_only_touch_the_secrets_it_makes() -> None:
    """It reads and changes Secrets by name; only making one cannot be bound to a name."""
    rules = render().one("Role", "ioa-credentials")["rules"]

    made = ["discovery", "groups", "registry", "router", "calculator", "user"]
    assert [rule["verbs"] for rule in rules] == [["create"], ["get", "patch"]]
    assert sorted(rules[1]["resourceNames"]) == sorted([*(f"ioa-{name}-nats" for name in made), "ioa-nats-authorization"])


def test_the_job_checks_whom_it_shows_its_token() -> None:
    """Unless that is turned off, for a cluster that publishes no authority."""
    commands = [
        main_container(render({"credentials": {"verifyApiServer": verify}}).one("Job", "ioa-credentials"))["command"][3:]
        for verify in (True, False)
    ]

    assert commands == [["/etc/ioa/plan.json"], ["/etc/ioa/plan.json", "--unverified"]]


def test_the_rights_of_the_job_go_when_it_is_done() -> None:
    """Nothing that may write Secrets stays in the cluster, not if it has failed either; of that the Job's own log is left."""
    policies = {
        one["kind"]: one["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
        for one in render().manifests
        if one["metadata"]["name"] == "ioa-credentials"
    }

    always, on_success = "before-hook-creation,hook-succeeded,hook-failed", "before-hook-creation,hook-succeeded"
    rights = ("ServiceAccount", "Role", "RoleBinding", "ConfigMap", "NetworkPolicy")
    assert policies == {**dict.fromkeys(rights, always), "Job": on_success}


@_CASES
def test_no_secret_stands_in_a_manifest(values: Path) -> None:
    """Seeds and keys are read from Secrets by whoever needs them; helm makes only Qdrant's key and NATS's certificate."""
    rendered = render(values)

    assert {one["metadata"]["name"].rpartition("-")[2] for one in rendered.all("Secret")} <= {"qdrant", "tls"}
    assert _SEED.findall(json.dumps(rendered.manifests)) == []


def test_an_agent_sees_no_seed_but_its_own() -> None:
    """Of the pool's Secret, each pod mounts the one key that bears its name."""
    mounts = {one["name"]: one for one in main_container(render().one("StatefulSet", "ioa-calculator"))["volumeMounts"]}

    assert mounts["credentials"] == {
        "name": "credentials", "mountPath": "/etc/ioa/credentials/seed", "subPathExpr": "$(IOA_REPLICA)", "readOnly": True,
    }  # fmt: skip


def test_each_service_has_credentials_of_its_own() -> None:
    """Who takes a service over is that service and no other."""
    rendered = render()
    secrets = {
        name: [volume["secret"]["secretName"] for volume in pod["volumes"] if volume["name"] == "credentials"]
        for name, pod in rendered.pods()
        if name.startswith("Deployment/")
    }

    assert secrets == {f"Deployment/ioa-{name}": [f"ioa-{name}-nats"] for name in ("discovery", "groups", "registry", "router")}


@_CASES
def test_every_pod_is_behind_a_network_policy(values: Path) -> None:
    """Unless they are turned off, a policy of both directions selects each pod of the release."""
    rendered = render(values)
    policies = rendered.all("NetworkPolicy")
    if values.stem == "without-volumes":
        assert policies == []
        return

    selected = {policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for policy in policies}
    both_ways = {tuple(policy["spec"]["policyTypes"]) for policy in policies}
    assert (selected, both_ways) == (
        {_component(one) for one in rendered.manifests if "template" in one.get("spec", {})} | {"test"},
        {("Ingress", "Egress")},
    )


def test_services_reach_nothing_but_nats_and_names() -> None:
    """A service that was taken over cannot call home."""
    egress = render().one("NetworkPolicy", "ioa-router")["spec"]["egress"]

    assert [sorted(port["port"] for port in rule["ports"]) for rule in egress] == [[53, 53], [4222]]
    assert [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in egress[1]["to"]] == ["nats"]


_CLUSTER_DNS = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}


def test_names_are_asked_of_the_clusters_resolver_alone() -> None:
    """What is taken over cannot carry data out in questions to a resolver of its own."""
    rules = [
        rule
        for policy in render().all("NetworkPolicy")
        for rule in policy["spec"]["egress"]
        if 53 in [port["port"] for port in rule.get("ports", ())]
    ]
    assert rules
    assert all(rule["to"] == [_CLUSTER_DNS] for rule in rules)


def test_what_is_outside_is_reached_where_it_was_said_to_be() -> None:
    """A NATS and a model of one's own at the networks that were named; by default not where clouds hand out machines' keys."""
    values: Manifest = {
        "nats": {"enabled": False, "externalUrl": "nats://nats.example.com:4222"},
        "model": {"baseUrl": "https://models.example.com/v1", "name": "large"},
    }
    named = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    reached = [
        [
            rule["to"]
            for name in ("ioa-router", "ioa-calculator")
            for rule in render({**values, "networkPolicy": policy}).one("NetworkPolicy", name)["spec"]["egress"]
            if rule["ports"][0]["port"] in (4222, 443)
        ]
        for policy in ({}, {"outside": named})
    ]
    assert [len(to) for to in reached] == [3, 3]
    assert all([peer["ipBlock"]["cidr"] for peer in peers] == ["0.0.0.0/0", "::/0"] for peers in reached[0])
    assert reached[1] == [named] * 3


_READERS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


@pytest.mark.parametrize(
    ("values", "heard"),
    [({}, False), ({"networkPolicy": {"monitoring": _READERS}}, True), (CI_OF_KEDA, True)],
    ids=["default", "readers", "keda"],
)
def test_monitoring_of_nats_is_heard_only_where_somebody_reads_it(values: Manifest | Path, heard: bool) -> None:
    """It tells anybody who is connected and what he reads. Without readers it listens within the pod, where it is probed."""
    rendered = render(values)
    config = rendered.one("ConfigMap", "ioa-nats")["data"]["nats.conf"]
    container = main_container(rendered.one("StatefulSet", "ioa-nats"))
    probes = [container[f"{name}Probe"] for name in ("startup", "readiness", "liveness")]
    ports = [
        {port["name"] for port in container["ports"]},
        {port["name"] for port in rendered.one("Service", "ioa-nats-headless")["spec"]["ports"]},
        {rule["ports"][0]["port"] for rule in rendered.one("NetworkPolicy", "ioa-nats")["spec"]["ingress"]},
    ]
    assert ("http: 0.0.0.0:8222" in config, "http: 127.0.0.1:8222" in config) == (heard, not heard)
    assert [("httpGet" in probe, "exec" in probe) for probe in probes] == [(heard, not heard)] * 3
    assert [("monitor" in found) for found in ports] == [heard] * 3


@_CASES
def test_nothing_lets_in_everybody_but_what_is_meant_for_everybody(values: Path) -> None:
    """A rule without peers lets in each pod of the cluster: to metrics and the gateway, unless it is said who may."""
    open_to_all = [
        (policy["metadata"]["name"], port["port"])
        for policy in render(values).all("NetworkPolicy")
        for rule in policy["spec"].get("ingress", ())
        for port in rule["ports"]
        if not rule.get("from")
    ]
    assert {(name, port) for name, port in open_to_all if port != "metrics"} <= {("ioa-gateway", "http")}


def test_keda_reads_monitoring_from_where_it_runs() -> None:
    """Its own namespace by default, besides those who read it anyway; who scales by nothing lets in those alone."""
    keda = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}]
    elsewhere = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]
    scaled = [{"name": "a", "target": "a.py:a", "autoscaling": {"enabled": True}}]
    cases: list[tuple[Manifest, Manifest]] = [
        ({"agentPools": scaled}, {}),
        ({"agentPools": scaled}, {"monitoring": _READERS}),
        ({"agentPools": scaled}, {"keda": elsewhere}),
        ({"agentPools": scaled}, {"monitoring": _READERS, "keda": []}),
        ({}, {"monitoring": _READERS}),
    ]
    let_in = [
        rule["from"]
        for values, policy in cases
        for rule in render({**values, "networkPolicy": policy}).one("NetworkPolicy", "ioa-nats")["spec"]["ingress"]
        if rule["ports"][0]["port"] == "monitor"
    ]
    assert let_in == [keda, [*_READERS, *keda], elsewhere, _READERS, _READERS]


def test_only_services_agents_and_the_test_are_clients_of_nats() -> None:
    """The label that lets a pod connect is theirs alone."""
    rendered = render({"qdrant": {"enabled": True}})
    labels = {
        one["metadata"]["name"]: (one if one["kind"] == "Pod" else one["spec"]["template"])["metadata"]["labels"]
        for one in rendered.manifests
        if one["kind"] in ("Deployment", "StatefulSet", "Job", "Pod")
    }

    clients = ("discovery", "groups", "registry", "router", "calculator", "test")
    assert {name for name, found in labels.items() if found.get("ioa-nats-client") == "true"} == {f"ioa-{name}" for name in clients}


def test_only_nodes_of_nats_reach_its_cluster_port() -> None:
    """Whoever could connect there would be a node, and permitted everything."""
    [rule] = [
        rule
        for rule in render().one("NetworkPolicy", "ioa-nats")["spec"]["ingress"]
        if [port["port"] for port in rule["ports"]] == ["cluster"]
    ]

    assert [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in rule["from"]] == ["nats"]


def test_an_image_by_digest_is_exactly_that() -> None:
    """A tag can be moved, a digest cannot."""
    digest = f"sha256:{'a' * 64}"
    images = {key: {"digest": digest} for key in ("service", "discovery", "agent", "nats", "natsReloader", "qdrant")}

    used = {one["image"] for _, one in _containers(render({"images": images, "qdrant": {"enabled": True}}))}
    assert {image.partition("@")[2] for image in used} == {digest}


def _containers(rendered: Rendered) -> Iterator[tuple[str, Manifest]]:
    for name, pod in rendered.pods():
        for one in (*pod.get("initContainers", ()), *pod["containers"]):
            if one["name"] not in _SETS_CONTAINERS_OF_ITS_OWN:
                yield f"{name}/{one['name']}", one


def _component(manifest: Manifest) -> str:
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])


def _wrong(found: Manifest, wanted: Manifest) -> list[str]:
    return [f"{key} is {found.get(key)!r}" for key, value in wanted.items() if found.get(key) != value]
