"""Agent pools: what their pods run, what they know, and what scales them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chart.rendering import CHART, Manifest, Rendered, environment_of, main_container, render

pytestmark = pytest.mark.chart


def test_a_replica_is_known_by_its_pod() -> None:
    """The number at the end of a pod's name is that of the agent."""
    assert environment_of(_pool())["IOA_REPLICA"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_an_agent_is_told_how_much_it_may_do() -> None:
    """Tasks and goals at once, and how long it may drain."""
    environment = environment_of(_pool(tasksAtOnce=1, goalsAtOnce=2, drainSeconds=600))

    told = {key: environment[key] for key in ("IOA_TASKS_AT_ONCE", "IOA_GOALS_AT_ONCE", "IOA_DRAIN", "IOA_AGENT_DATA")}
    assert told == {"IOA_TASKS_AT_ONCE": "1", "IOA_GOALS_AT_ONCE": "2", "IOA_DRAIN": "600", "IOA_AGENT_DATA": "/data"}


@pytest.mark.parametrize(("pool", "seconds"), [({}, 75), ({"drainSeconds": 600}, 615), ({"terminationGracePeriodSeconds": 61}, 61)])
def test_a_pod_has_more_time_to_end_than_its_agent_to_drain(pool: Mapping[str, Any], seconds: int) -> None:
    """Nothing that could have finished is killed."""
    assert _pool(**pool)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds


@pytest.mark.parametrize(
    ("pool", "command"),
    [
        ({"target": "a.py:a"}, ["python3", "-m", "ioa.cli", "agent", "run", "a.py:a"]),
        ({"command": ["./mine"], "args": ["--x"]}, ["./mine", "--x"]),
    ],
)
def test_a_pool_runs_a_target_or_a_command_of_its_own(pool: Mapping[str, Any], command: list[str]) -> None:
    """Any image that speaks to the system will do."""
    container = main_container(render({"agentPools": [{"name": "a", **pool}]}).one("StatefulSet", "ioa-a"))

    assert container["command"] + container.get("args", []) == command


@pytest.mark.parametrize(
    ("image", "reference", "policy"),
    [
        ({}, "localhost/ioa/agent:0.1.0", "IfNotPresent"),
        ({"tag": "2"}, "localhost/ioa/agent:2", "IfNotPresent"),
        ({"registry": "r.io", "repository": "x/y", "tag": "3", "pullPolicy": "Always"}, "r.io/x/y:3", "Always"),
        ({"registry": "", "repository": "x", "tag": "3"}, "localhost/x:3", "IfNotPresent"),
    ],
)
def test_a_pool_has_an_image_of_its_own(image: Mapping[str, str], reference: str, policy: str) -> None:
    """What it leaves out is as for other pools."""
    container = main_container(_pool(image=image))

    assert (container["image"], container["imagePullPolicy"]) == (reference, policy)


def test_the_card_says_what_the_values_say() -> None:
    """In the words that the worker reads, under the pool's name."""
    skills = ["s", {"name": "t", "description": "u"}]
    card = {"description": "d", "examples": ["e"], "skills": skills, "mayTeamUp": False, "leads": False}
    rendered = _rendered(card=card)

    written = json.loads(rendered.one("ConfigMap", "ioa-a")["data"]["card.json"])
    assert written == {
        "agent_id": "a",
        "description": "d",
        "examples": ["e"],
        "skills": skills,
        "may_team_up": False,
        "leads": False,
    }


def test_a_small_agent_can_be_given_in_the_values() -> None:
    """Its file is where the target looks, and changing it restarts the pods."""
    one, other = (_rendered(files={"a.py": content}) for content in ("x = 1\n", "x = 2\n"))

    assert one.one("ConfigMap", "ioa-a")["data"]["a.py"] == "x = 1\n"
    sums = [
        each.one("StatefulSet", "ioa-a")["spec"]["template"]["metadata"]["annotations"]["checksum/files"] for each in (one, other)
    ]
    assert sums[0] != sums[1]


def test_a_pool_may_have_a_model_of_its_own() -> None:
    """What it leaves out is as for all."""
    model = {"baseUrl": "https://m/v1", "name": "large", "existingSecret": "key"}
    rendered = render({"model": model, "agentPools": [{"name": "a", "target": "a:a", "model": {"name": "small"}}]})

    environment = environment_of(rendered.one("StatefulSet", "ioa-a"))
    assert {key: value for key, value in environment.items() if key.startswith("IOA_LLM")} == {
        "IOA_LLM_BASE_URL": "https://m/v1", "IOA_LLM_MODEL": "small",
        "IOA_LLM_API_KEY": {"secretKeyRef": {"name": "key", "key": "api-key"}},
    }  # fmt: skip


def test_a_file_says_which_model_each_agent_has() -> None:
    """It lies beside the agent's own files, and changing it restarts the pods."""
    config = '[agents.a]\nbase_url = "https://m/v1"\nmodel = "small"\n'
    rendered = render({"model": {"config": config}, "agentPools": [{"name": "a", "target": "a:a"}]})

    environment = environment_of(rendered.one("StatefulSet", "ioa-a"))
    told = {key: value for key, value in environment.items() if key.startswith("IOA_LLM")}
    assert (told, rendered.one("ConfigMap", "ioa-a")["data"]["models.toml"]) == (
        {"IOA_LLM_CONFIG": "/etc/ioa/agent/models.toml"},
        config,
    )


def test_without_a_model_no_agent_is_told_of_one() -> None:
    """An empty variable would be taken for a model."""
    assert [key for key in environment_of(_pool()) if key.startswith("IOA_LLM")] == []


@pytest.mark.parametrize(("url", "port"), [("https://m/v1", 443), ("http://m:8080/v1", 8080)])
def test_agents_may_reach_their_model_and_what_they_are_given(url: str, port: int) -> None:
    """And nothing else: names, NATS, the model's port, the pool's own rules."""
    own = {"ports": [{"port": 5432, "protocol": "TCP"}]}
    rendered = render({"agentPools": [{"name": "a", "target": "a:a", "model": {"baseUrl": url, "name": "m"}, "egress": [own]}]})

    egress = rendered.one("NetworkPolicy", "ioa-a")["spec"]["egress"]
    assert [rule["ports"][0]["port"] for rule in egress] == [53, 4222, port, 5432]


def test_each_agent_has_a_volume() -> None:
    """Claims are kept when the pool shrinks, so that an agent that comes back goes on where it was."""
    spec = _pool(persistence={"size": "5Gi", "storageClass": "fast", "annotations": {"a": "b"}})["spec"]

    [claim] = spec["volumeClaimTemplates"]
    assert (claim["metadata"]["annotations"], claim["spec"]) == (
        {"a": "b"},
        {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}},
    )
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_the_storage_class_for_all_is_taken_where_none_is_named() -> None:
    """NATS, Qdrant and agents alike."""
    rendered = render({"global": {"storageClass": "slow"}, "qdrant": {"enabled": True, "persistence": {"storageClass": "fast"}}})

    classes = {
        one["metadata"]["name"]: one["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"]
        for one in rendered.all("StatefulSet")
    }
    assert classes == {"ioa-nats": "slow", "ioa-qdrant": "fast", "ioa-calculator": "slow"}


def test_without_volumes_nothing_is_claimed() -> None:
    """Memory then lasts as long as its pod."""
    rendered = render(CHART / "ci" / "without-volumes.yaml")

    assert [one["metadata"]["name"] for one in rendered.all("StatefulSet") if "volumeClaimTemplates" in one["spec"]] == []
    assert all("emptyDir" in _volumes(one)["data"] for one in rendered.all("StatefulSet"))


def test_a_fixed_pool_says_how_many_and_a_scaled_one_does_not() -> None:
    """What scales a pool decides, not the next upgrade."""
    fixed, scaled = _pool(replicas=3), _pool(autoscaling={"enabled": True})

    assert (fixed["spec"]["replicas"], "replicas" in scaled["spec"]) == (3, False)


def test_keda_looks_at_the_queue_that_the_control_plane_keeps() -> None:
    """The pool's consumer of the stream of accepted goals, as ioa.adapters.nats.topology names them."""
    scaled = _rendered(autoscaling={"enabled": True, "minReplicas": 0, "maxReplicas": 7, "goalsPerReplica": 2}).one(
        "ScaledObject", "ioa-a"
    )

    spec = scaled["spec"]
    assert (spec["scaleTargetRef"], spec["minReplicaCount"], spec["maxReplicaCount"]) == (
        {"kind": "StatefulSet", "name": "ioa-a"},
        0,
        7,
    )
    assert spec["triggers"] == [
        {
            "type": "nats-jetstream",
            "metadata": {
                "natsServerMonitoringEndpoint": "ioa-nats-headless.agents.svc.cluster.local:8222",
                "account": "IOA", "stream": "IOA_WORK", "consumer": "pool-a", "lagThreshold": "2", "activationLagThreshold": "0",
            },
        }
    ]  # fmt: skip


def test_keda_may_look_at_more() -> None:
    """Goals for anybody, tasks that run, and triggers of the operator's."""
    more = {"type": "cron", "metadata": {}}
    keda = {"anyGoal": True, "prometheusUrl": "http://p:9090", "extraTriggers": [more]}
    triggers = _rendered(autoscaling={"enabled": True, "keda": keda}).one("ScaledObject", "ioa-a")["spec"]["triggers"]

    assert [one["metadata"].get("consumer") for one in triggers] == ["pool-a", "any", None, None]
    assert triggers[2]["metadata"]["query"] == 'sum(ioa_worker_tasks_running{app_kubernetes_io_component="a"})'
    assert triggers[3] == more


def test_a_plain_autoscaler_asks_for_external_metrics() -> None:
    """Of waiting goals and running tasks, by the labels they have in Prometheus."""
    scaler = _rendered(autoscaling={"enabled": True, "by": "hpa"}).one("HorizontalPodAutoscaler", "ioa-a")

    asked = [
        (one["external"]["metric"]["name"], one["external"]["metric"]["selector"]["matchLabels"])
        for one in scaler["spec"]["metrics"]
    ]
    assert asked == [
        ("ioa_queue_waiting", {"consumer": "pool-a", "app_kubernetes_io_component": "groups"}),
        ("ioa_worker_tasks_running", {"app_kubernetes_io_component": "a"}),
    ]


def test_credentials_are_made_for_as_many_agents_as_a_pool_may_have() -> None:
    """So that `kubectl scale` needs no upgrade."""
    plan = json.loads(_rendered(maxReplicas=3).one("ConfigMap", "ioa-credentials")["data"]["plan.json"])

    assert plan["secrets"]["ioa-a-nats"]["seeds"] == {
        f"ioa-a-{number}": {"agent": f"a-{number}", "pool": "a"} for number in range(3)
    }


def _rendered(**pool: Any) -> Rendered:
    return render({"agentPools": [{"name": "a", "target": "a.py:a", **pool}]})


def _pool(**pool: Any) -> Manifest:
    return _rendered(**pool).one("StatefulSet", "ioa-a")


def _volumes(manifest: Manifest) -> Mapping[str, Any]:
    return {one["name"]: one for one in manifest["spec"]["template"]["spec"]["volumes"]}
