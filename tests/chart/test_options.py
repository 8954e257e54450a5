"""Every option does what its comment says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from tests.chart.rendering import Manifest, Rendered, environment_of, main_container, render

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


@pytest.mark.parametrize("component", ["services", "pool", "nats"])
def test_what_one_component_says_wins(component: str) -> None:
    """Maps are merged, so that the rest of `workloads` still holds."""
    own = {"nodeSelector": {"disk": "ssd"}}
    values = {
        "workloads": {"nodeSelector": {"disk": "hdd", "zone": "a"}},
        "services": {"router": own if component == "services" else {}},
        "nats": own if component == "nats" else {},
        "agentPools": [{"name": "calculator", "target": "a.py:a"} | (own if component == "pool" else {})],
    }
    kind, name = dict(zip(("services", "pool", "nats"), _WORKLOADS, strict=False))[component]

    assert _at(render(values).one(kind, name), (*_POD, "nodeSelector")) == {"disk": "ssd", "zone": "a"}


def test_more_of_everything_is_added() -> None:
    """Environment, volumes, mounts and containers stand beside the chart's own."""
    more: dict[str, Any] = {
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "extraContainers": [{"name": "beside", "image": "x:1"}],
        "podLabels": {"a": "b"},
        "podAnnotations": {"c": "d"},
    }
    for kind, name in _WORKLOADS:
        one = render({"workloads": more, "qdrant": {"enabled": True}}).one(kind, name)
        template, pod = one["spec"]["template"], _at(one, _POD)
        added = (
            pod["containers"][0]["env"][-1],
            pod["volumes"][-1],
            pod["containers"][0]["volumeMounts"][-1],
            pod["containers"][-1:],
            template["metadata"]["labels"]["a"],
            template["metadata"]["annotations"]["c"],
        )
        assert added == (
            more["extraEnv"][0], more["extraVolumes"][0], more["extraVolumeMounts"][0], more["extraContainers"], "b", "d",
        )  # fmt: skip


def test_labels_and_annotations_reach_every_object() -> None:
    """Common ones too."""
    rendered = render({"commonLabels": {"team": "a"}, "commonAnnotations": {"contact": "b"}, "qdrant": {"enabled": True}})

    assert {(one["metadata"]["labels"]["team"], one["metadata"]["annotations"]["contact"]) for one in rendered.manifests} == {
        ("a", "b")
    }


def test_a_registry_for_all_images_and_secrets_to_pull_them() -> None:
    """One setting moves every image, those of others too."""
    rendered = render({"global": {"imageRegistry": "r.example.com", "imagePullSecrets": ["p"]}, "qdrant": {"enabled": True}})

    pods = [pod for _, pod in rendered.pods()]
    assert {one["image"].partition("/")[0] for pod in pods for one in pod["containers"]} == {"r.example.com"}
    assert [pod["imagePullSecrets"] for pod in pods] == [[{"name": "p"}]] * len(pods)


def test_pods_are_spread_over_nodes_unless_told_otherwise() -> None:
    """A constraint without a selector gets the component's own."""
    own = {"app.kubernetes.io/name": "ioa", "app.kubernetes.io/instance": "ioa", "app.kubernetes.io/component": "router"}
    zones = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    nodes = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}

    spreads = [
        _at(render(values).one("Deployment", "ioa-router"), (*_POD, "topologySpreadConstraints"))
        for values in ({}, {"workloads": {"topologySpreadConstraints": [zones]}})
    ]
    assert spreads == [[{**spread, "labelSelector": {"matchLabels": own}}] for spread in (nodes, zones)]


def test_the_three_probes_differ() -> None:
    """Started when it runs, ready when NATS answers too, and restarted only when it hangs, whatever NATS does."""
    one = main_container(render().one("Deployment", "ioa-router"))

    probes = {name: (one[name]["httpGet"]["path"], one[name]["periodSeconds"], one[name]["failureThreshold"]) for name in _PROBES}
    assert probes == {
        "startupProbe": ("/healthz", 1, 120), "readinessProbe": ("/readyz", 5, 2), "livenessProbe": ("/healthz", 10, 6),
    }  # fmt: skip


_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def test_a_disruption_budget_needs_more_than_one_replica() -> None:
    """With one, it would keep a node from ever being drained."""
    rendered = render({"services": {"router": {"replicas": 1}, "groups": {"podDisruptionBudget": {"enabled": False}}}})

    assert {one["metadata"]["name"] for one in rendered.all("PodDisruptionBudget")} == {"ioa-registry", "ioa-discovery", "ioa-nats"}


def test_service_accounts_are_made_or_taken() -> None:
    """A given account is used and not made."""
    rendered = render(
        {"services": {"router": {"serviceAccount": {"name": "mine"}}, "groups": {"serviceAccount": {"create": False}}},
         "workloads": {"serviceAccount": {"annotations": {"role": "r"}}}}
    )  # fmt: skip

    names = {
        name: _at(rendered.one("Deployment", f"ioa-{name}"), (*_POD, "serviceAccountName"))
        for name in ("router", "groups", "registry")
    }
    assert names == {"router": "mine", "groups": "default", "registry": "ioa-registry"}
    assert (rendered.has("ServiceAccount", "ioa-router"), rendered.has("ServiceAccount", "ioa-groups")) == (False, False)
    assert rendered.one("ServiceAccount", "ioa-registry")["metadata"]["annotations"]["role"] == "r"


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


@pytest.mark.parametrize(
    ("values", "copies"),
    [
        ({}, "3"),
        ({"nats": {"replicas": 1}}, "1"),
        ({"nats": {"enabled": False, "externalUrl": "nats://n:4222"}}, "1"),
        ({"controlPlane": {"streamReplicas": 5}}, "5"),
    ],
)
def test_streams_have_as_many_copies_as_nats_has_nodes(values: Mapping[str, Any], copies: str) -> None:
    """Unless a number is given."""
    assert environment_of(render(values).one("Deployment", "ioa-router"))["IOA_REPLICAS"] == copies


@pytest.mark.parametrize(
    ("values", "store"),
    [
        ({"nats": {"jetstream": {"maxFileStore": "20G"}}}, "20000000000"),
        ({"nats": {"enabled": False, "externalUrl": "nats://n:4222"}}, "0"),
        ({"nats": {"enabled": False, "externalUrl": "nats://n:4222"}, "quotas": {"store": {"bytes": 5_000_000_000}}}, "5000000000"),
    ],
)
def test_streams_share_what_nats_may_store(values: Mapping[str, Any], store: str) -> None:
    """Of a NATS that is not the chart's nobody knows how much that is unless it is said."""
    assert environment_of(render(values).one("Deployment", "ioa-router"))["IOA_STORE_BYTES"] == store


def test_logs_show_what_was_said_only_when_asked() -> None:
    """User content stays out of logs by default."""
    variables = [environment_of(render(values).one("Deployment", "ioa-router")) for values in ({}, {"logContent": True})]

    assert [one.get("IOA_LOG_CONTENT") for one in variables] == [None, "true"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, {"IOA_INDEX_FOLDER": "/data/index"}),
        ({"qdrant": {"externalUrl": "http://q:6333"}}, {"IOA_QDRANT_URL": "http://q:6333"}),
        (
            {"qdrant": {"externalUrl": "http://q:6333", "existingSecret": "s", "secretKey": "k"}},
            {"IOA_QDRANT_URL": "http://q:6333", "IOA_QDRANT_API_KEY": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ),
        (
            {"qdrant": {"enabled": True}},
            {
                "IOA_QDRANT_URL": "http://ioa-qdrant.agents.svc.cluster.local:6333",
                "IOA_QDRANT_API_KEY": {"secretKeyRef": {"name": "ioa-qdrant", "key": "api-key"}},
            },
        ),
        ({"services": {"discovery": {"embeddingModel": "/m"}}}, {"IOA_INDEX_FOLDER": "/data/index", "IOA_EMBEDDING_MODEL": "/m"}),
    ],
)
def test_discovery_keeps_its_index_where_it_is_told(values: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """In its process, on a Qdrant of the release, or on another one."""
    environment = environment_of(render(values).one("Deployment", "ioa-discovery"))

    assert {
        key: value for key, value in environment.items() if key.startswith(("IOA_QDRANT", "IOA_INDEX", "IOA_EMBEDDING_MODEL"))
    } == told


def test_the_index_may_have_a_volume() -> None:
    """Discovery is a StatefulSet then, with a claim for each pod."""
    rendered = render({"services": {"discovery": {"index": {"size": "5Gi", "persistent": True, "storageClass": "fast"}}}})

    one = rendered.one("StatefulSet", "ioa-discovery")
    [claim] = one["spec"]["volumeClaimTemplates"]
    assert (claim["spec"]["storageClassName"], claim["spec"]["resources"]["requests"]["storage"]) == ("fast", "5Gi")
    assert {"name": "data", "mountPath": "/data"} in main_container(one)["volumeMounts"]
    assert not rendered.has("Deployment", "ioa-discovery")


def test_metrics_are_served_where_the_monitors_look() -> None:
    """A PodMonitor selects every pod of services with a port named metrics, and another one those of pools."""
    values = {"port": 9999, "podMonitor": {"enabled": True, "labels": {"release": "p"}, "interval": "5s"}}
    rendered = render({"metrics": values})

    for monitor in rendered.all("PodMonitor"):
        [looked_at] = monitor["spec"]["podMetricsEndpoints"]
        assert monitor["metadata"]["labels"]["release"] == "p"
        assert looked_at.items() >= {"port": "metrics", "path": "/metrics", "interval": "5s"}.items()
    assert main_container(rendered.one("Deployment", "ioa-router"))["ports"] == [{"name": "metrics", "containerPort": 9999}]


def test_other_objects_are_rendered_as_templates() -> None:
    """As text and as a manifest."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"of": "{{ .Release.Name }}"}}
    rendered = render({"extraObjects": [manifest, json.dumps(manifest).replace('"one"', '"two"')]}, release="mine")

    assert [rendered.one("ConfigMap", name)["data"] for name in ("one", "two")] == [{"of": "mine"}] * 2


@pytest.mark.parametrize(
    ("values", "release", "name"),
    [
        ({}, "ioa", "ioa-router"),
        ({}, "prod", "prod-ioa-router"),
        ({"fullnameOverride": "x"}, "prod", "x-router"),
        ({"nameOverride": "y"}, "prod", "prod-y-router"),
    ],
)
def test_names_begin_with_the_release(values: Mapping[str, Any], release: str, name: str) -> None:
    """Two releases can share a namespace."""
    assert render(values, release=release).has("Deployment", name)


def test_the_goal_of_the_test_can_be_chosen() -> None:
    """`helm test` asks for what the release's own agents can do."""
    pod = render({"test": {"goal": "G", "expect": "E", "timeoutSeconds": 9}}).one("Pod", "ioa-test")

    environment = environment_of(pod)
    assert ({key: environment[key] for key in ("GOAL", "EXPECT", "TIMEOUT_SECONDS")}, pod["spec"]["activeDeadlineSeconds"]) == (
        {"GOAL": "G", "EXPECT": "E", "TIMEOUT_SECONDS": "9"}, 39,
    )  # fmt: skip


@pytest.mark.parametrize("annotations", [{}, {"a": "b"}])
def test_hooks_are_no_part_of_the_release(annotations: Mapping[str, str]) -> None:
    """The test runs when it is asked for, and the Job before everything else; neither leaves anything behind when it went well."""
    rendered = render({"workloads": {"podAnnotations": annotations}})

    hooks = {
        (one["kind"], one["metadata"]["annotations"]["helm.sh/hook"], one["metadata"]["annotations"]["helm.sh/hook-delete-policy"])
        for one in (rendered.one("Pod", "ioa-test"), rendered.one("Job", "ioa-credentials"))
    }
    assert hooks == {
        ("Pod", "test", "before-hook-creation,hook-succeeded"),
        ("Job", "pre-install,pre-upgrade,pre-rollback", "before-hook-creation,hook-succeeded"),
    }


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


def test_another_certificate_restarts_nats_and_its_clients() -> None:
    """They read it when they start: pods bear the sum of what they read, and a Secret that is kept restarts nobody."""
    rendered = render()
    secret = rendered.one("Secret", "ioa-nats-tls")["data"]
    sums = {f"checksum/{key}": sha256(content.encode()).hexdigest() for key, content in secret.items()}

    for name, pod in _annotations(rendered).items():
        read = "checksum/tls.crt" if name == "ioa-nats" else "checksum/ca.crt"
        assert {key: value for key, value in pod.items() if key in sums} == {read: sums[read]}
    assert _annotations(render(_GIVEN_CERTIFICATE)) == _annotations(render(_GIVEN_CERTIFICATE))


def _annotations(rendered: Rendered) -> dict[str, Mapping[str, str]]:
    workloads = [one for one in rendered.manifests if one["kind"] in ("Deployment", "StatefulSet")]
    return {one["metadata"]["name"]: one["spec"]["template"]["metadata"].get("annotations", {}) for one in workloads}
