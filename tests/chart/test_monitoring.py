"""What Prometheus takes of whom: of services what they tell, and of pools, which may run a stranger's image, what agents tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
import yaml
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR

from tests.chart.rendering import CHART, Manifest, Rendered, render
from tools.metrics_page import SECTIONS, described

pytestmark = pytest.mark.chart

_EVERYBODY = {
    **yaml.safe_load((CHART / "ci" / "tenants.yaml").read_text()),
    "metrics": {"podMonitor": {"enabled": True}},
    "callout": {"enabled": True, "issuer": "https://id.example.com", "audience": "ioa"},
    "gateway": {"enabled": True},
}
"""Components as the PodMonitors tell them; none is told where something else scrapes."""
_ANSWERED = "ioa_request"
"""How that begins which an agent does not tell of what every process may: it answers no requests."""


def test_each_pod_that_has_metrics_is_scraped_by_one_monitor() -> None:
    """As a service or as a pool, of whichever tenant, and NATS and Qdrant as neither."""
    rendered = render(_EVERYBODY)
    chosen = {monitor["metadata"]["name"]: set(_components(monitor)) for monitor in rendered.all("PodMonitor")}
    assert chosen["ioa-pools"] == {"calculator", "acme-calculator", "acme-writer"}
    assert chosen["ioa-monitoring"] == set(_with_metrics(rendered)) - chosen["ioa-pools"]
    assert {"registry", "umbra-groups", "gateway", "authcallout"} <= chosen["ioa-monitoring"]


def test_of_pools_what_agents_tell_is_kept_and_nothing_else() -> None:
    """As docs/metrics.md has it: a pool does not stand for a service, by whatever it serves."""
    of_agents = {
        one
        for title, modules in SECTIONS
        if title in ("Every process", "Agents")
        for one in _samples(modules)
        if not one[0].startswith(_ANSWERED)
    }
    added = (GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR)
    of_agents |= {(sample.name, "", "") for one in added for family in one.collect() for sample in family.samples}
    others = {one for _, modules in SECTIONS for one in _samples(modules)} - of_agents
    forged = {
        ("ioa_build_info", "ioa-registry", ""),
        ("ioa_deliveries_total", "", "IOA_ORDERS"),
        ("kube_pod_status_ready", "", ""),
        ("ALERTS", "", ""),
        ("billing_total", "", ""),
    }
    kept = _kept_of_pools({})
    assert {one for one in of_agents | others | forged if _takes(kept, *one)} == of_agents


@pytest.mark.parametrize("name", ["ioa-monitoring", "ioa-pools"])
def test_who_somebody_is_is_told_by_kubernetes(name: str) -> None:
    """Labels that are scraped do not replace those of the pod, and nobody has Prometheus ask somebody else."""
    spec = _monitors({})[name]["spec"]
    [looked_at] = spec["podMetricsEndpoints"]
    assert (spec["podTargetLabels"], looked_at["honorLabels"], looked_at["followRedirects"]) == (
        ["app.kubernetes.io/component"], False, False,
    )  # fmt: skip


def _monitors(values: Manifest) -> dict[str, Manifest]:
    rendered = render({"metrics": {"podMonitor": {"enabled": True, **values}}})
    return {monitor["metadata"]["name"]: monitor for monitor in rendered.all("PodMonitor")}


def _components(monitor: Manifest) -> list[str]:
    [chosen] = monitor["spec"]["selector"]["matchExpressions"]
    assert (chosen["key"], chosen["operator"]) == ("app.kubernetes.io/component", "In")
    return list(chosen["values"])


def _with_metrics(rendered: Rendered) -> Iterator[str]:
    for one in rendered.manifests:
        if one["kind"] in ("Deployment", "StatefulSet"):
            ports = [
                port["name"] for container in one["spec"]["template"]["spec"]["containers"] for port in container.get("ports", ())
            ]
            if "metrics" in ports:
                yield one["metadata"]["labels"]["app.kubernetes.io/component"]


def _kept_of_pools(values: Manifest) -> str:
    [looked_at] = _monitors(values)["ioa-pools"]["spec"]["podMetricsEndpoints"]
    [rule] = looked_at["metricRelabelings"]
    assert (rule["action"], rule["sourceLabels"]) == ("keep", ["__name__", "service", "stream"])
    return str(rule["regex"])


def _takes(kept: str, name: str, service: str, stream: str) -> bool:
    """Whether Prometheus keeps a sample: its expressions match all of the labels, with `;` between them."""
    return re.fullmatch(kept, f"{name};{service};{stream}") is not None


def _samples(modules: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Names, with the labels that an agent gives them."""
    for metric in (one for module in modules for one in described(module)):
        service, stream = ("ioa-agent" if "service" in metric.labels else ""), ("IOA_WORK" if "stream" in metric.labels else "")
        yield from ((sample, service, stream) for sample in metric.samples)
