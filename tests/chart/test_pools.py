"""Agent pools: what their pods run, what they know, and what scales them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chart.rendering import Manifest, Rendered, environment_of, render

pytestmark = pytest.mark.chart


def test_an_agent_is_told_how_much_it_may_do() -> None:
    """Tasks and goals at once, and how long it may drain."""
    environment = environment_of(_pool(tasksAtOnce=1, goalsAtOnce=2, drainSeconds=600))

    told = {key: environment[key] for key in ("IOA_TASKS_AT_ONCE", "IOA_GOALS_AT_ONCE", "IOA_DRAIN", "IOA_AGENT_DATA")}
    assert told == {"IOA_TASKS_AT_ONCE": "1", "IOA_GOALS_AT_ONCE": "2", "IOA_DRAIN": "600", "IOA_AGENT_DATA": "/data"}


@pytest.mark.parametrize(("pool", "seconds"), [({}, 75), ({"drainSeconds": 600}, 615), ({"terminationGracePeriodSeconds": 61}, 61)])
def test_a_pod_has_more_time_to_end_than_its_agent_to_drain(pool: Mapping[str, Any], seconds: int) -> None:
    """Nothing that could have finished is killed."""
    assert _pool(**pool)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds


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


def test_keda_looks_at_the_queue_that_the_control_plane_keeps() -> None:
    """The pool's consumer of the stream of accepted goals, as ioa.adapters.nats.streams.topology names them."""
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


def test_credentials_are_made_for_as_many_agents_as_a_pool_may_have() -> None:
    """So that `kubectl scale` needs no upgrade."""
    plan = json.loads(_rendered(maxReplicas=3).one("ConfigMap", "ioa-credentials")["data"]["plan.json"])

    assert plan["secrets"]["ioa-a-nats"]["seeds"] == {
        f"ioa-a-{number}": {"name": f"a-{number}", "role": "agent", "pool": "a"} for number in range(3)
    }


def _rendered(**pool: Any) -> Rendered:
    return render({"agentPools": [{"name": "a", "target": "a.py:a", **pool}]})


def _pool(**pool: Any) -> Manifest:
    return _rendered(**pool).one("StatefulSet", "ioa-a")
