"""Dashboards, alerts and their documentation speak of metrics that exist, in queries that parse, with something to do for each."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client import REGISTRY

import ioa
from tools.metrics_page import catalogue, main

ROOT = Path(__file__).parents[3]
DASHBOARD = json.loads((ROOT / "deploy/dashboards/ioa.json").read_text(encoding="utf-8"))
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "deploy/alerts/ioa.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
FOREIGN = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
"""What prometheus-client adds."""

ADDED = {"namespace", "pod", "job", "instance", "app_kubernetes_io_component", "le"}
"""Labels that Prometheus adds, and that of histograms."""

RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")


def queries() -> list[tuple[str, str]]:
    """Every query with the place it stands in; Grafana's variables are filled in as it would."""
    found = [(rule["alert"], rule["expr"]) for rule in RULES]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            filled = target["expr"].replace("$__rate_interval", "5m").replace("$namespace", ".*")
            found.append((f"{panel['title']} {target['refId']}", filled))
    return found


def selected(expression: Any) -> Iterator[promql_parser.VectorSelector]:
    """Every metric that a query selects."""
    found: list[promql_parser.VectorSelector] = []
    _visit(expression, found)
    return iter(found)


def _visit(expression: Any, found: list[promql_parser.VectorSelector]) -> None:
    if isinstance(expression, promql_parser.VectorSelector):
        found.append(expression)
        return
    for name in ("expr", "lhs", "rhs", "vector_selector", "args", "vs"):
        below = getattr(expression, name, None)
        for one in below if isinstance(below, list) else [below]:
            if one is not None and not isinstance(one, str | float):
                _visit(one, found)


@pytest.mark.parametrize(("where", "query"), queries(), ids=[where for where, _ in queries()])
def test_a_query_parses_and_its_metrics_and_labels_exist(where: str, query: str) -> None:
    """Each selects something, and nothing that no process exports; labels that Prometheus adds are allowed."""
    known = {sample: set(metric.labels) for metric in catalogue() for sample in metric.samples}
    chosen = list(selected(promql_parser.parse(query)))
    names = {one.name for one in chosen}
    unknown = {
        matcher.name
        for one in chosen
        if one.name in known
        for matcher in one.matchers.matchers
        if matcher.name not in known[one.name] | ADDED
    }
    assert names and names - set(known) - FOREIGN == set() and unknown == set()


def test_every_metric_is_documented() -> None:
    """The document is what would be generated, and the catalogue lists every metric that any module defines."""
    for module in pkgutil.walk_packages(ioa.__path__, "ioa."):
        if not module.name.startswith(("ioa.testing", "ioa.agent.model")) and not module.name.endswith("__main__"):
            import_module(module.name)
    for service in ("ioa_registry", "ioa_discovery", "ioa_groups", "ioa_router"):
        import_module(f"{service}.__main__")
    exported = {f"{one.name}_total" if one.type == "counter" else one.name for one in REGISTRY.collect()}
    listed = [metric.name for metric in catalogue()]
    assert {name for name in exported if name.startswith("ioa_")} == set(listed)
    assert len(listed) == len(set(listed))
    main(["--check", str(ROOT / "docs/metrics.md")])


def test_metrics_are_named_as_prometheus_has_it() -> None:
    """Counters end in `_total`, times in `_seconds`, sizes in `_bytes`; no label can hold an id."""
    wrong = [
        metric.name
        for metric in catalogue()
        if not re.fullmatch(r"ioa(_[a-z]+)+", metric.name)
        or (metric.kind == "counter") != metric.name.endswith("_total")
        or (metric.kind == "histogram" and not metric.name.endswith("_seconds"))
        or {"comm_id", "goal_id", "task_id", "agent_id", "agent", "comm", "goal", "trace_id"} & set(metric.labels)
        or not metric.meaning
    ]
    assert wrong == []


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_an_alert_says_what_it_means_and_what_to_do(rule: dict[str, Any]) -> None:
    """Its runbook entry is a heading of its own, with meaning, check and remedy; severities are two."""
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    entries = {
        heading.lower(): text for heading, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL)
    }
    entry = entries.get(anchor, "")
    assert (page, anchor) == ("docs/runbook.md", rule["alert"].lower())
    assert [part in entry for part in ("**Means.**", "**Check.**", "**Do.**")] == [True] * 3
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert all(rule["annotations"].get(name) for name in ("summary", "description"))


def test_the_runbook_has_no_entry_without_an_alert() -> None:
    """What it explains can happen; links within it lead somewhere."""
    entries = re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE)
    links = set(re.findall(r"\]\(#(\w+)\)", RUNBOOK))
    assert sorted(entries) == sorted(rule["alert"] for rule in RULES)
    assert links - {entry.lower() for entry in entries} == set()
