"""Agent pools: what their pods run, what they know, and what scales them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chart.rendering import Manifest, Rendered, render

pytestmark = pytest.mark.chart


@pytest.mark.parametrize(("pool", "seconds"), [({}, 75), ({"drainSeconds": 600}, 615), ({"terminationGracePeriodSeconds": 61}, 61)])
def test_a_pod_has_more_time_to_end_than_its_agent_to_drain(pool: Mapping[str, Any], seconds: int) -> None:
    """Nothing that could have finished is killed."""
    assert _pool(**pool)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == seconds


@pytest.mark.parametrize(("url", "port"), [("https://m/v1", 443), ("http://m:8080/v1", 8080)])
def test_agents_may_reach_their_model_and_what_they_are_given(url: str, port: int) -> None:
    """And nothing else: names, NATS, the model's port, the pool's own rules."""
    own = {"ports": [{"port": 5432, "protocol": "TCP"}]}
    rendered = render({"agentPools": [{"name": "a", "target": "a:a", "model": {"baseUrl": url, "name": "m"}, "egress": [own]}]})

    egress = rendered.one("NetworkPolicy", "ioa-a")["spec"]["egress"]
    assert [rule["ports"][0]["port"] for rule in egress] == [53, 4222, port, 5432]


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
