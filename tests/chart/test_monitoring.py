"""What Prometheus keeps of agent pools, whose images may be a stranger's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR

from tests.chart.rendering import render
from tools.metrics_page import SECTIONS, described

pytestmark = pytest.mark.chart

_ANSWERED = "ioa_request"
"""How metrics of requests begin: an agent answers none."""


def test_only_metrics_of_agents_are_kept_of_pools() -> None:
    """As docs/metrics.md has it: a pool does not stand for a service, whatever it serves."""
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
    monitor = render({"metrics": {"podMonitor": {"enabled": True}}}).one("PodMonitor", "ioa-pools")
    [rule] = monitor["spec"]["podMetricsEndpoints"][0]["metricRelabelings"]
    assert (rule["action"], rule["sourceLabels"]) == ("keep", ["__name__", "service", "stream"])
    # Prometheus joins the labels with `;` and matches the whole.
    assert {one for one in of_agents | others | forged if re.fullmatch(rule["regex"], ";".join(one))} == of_agents


def _samples(modules: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Names, with the labels that an agent gives them."""
    for metric in (one for module in modules for one in described(module)):
        service, stream = ("ioa-agent" if "service" in metric.labels else ""), ("IOA_WORK" if "stream" in metric.labels else "")
        yield from ((sample, service, stream) for sample in metric.samples)
