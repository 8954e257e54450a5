"""The list of metrics is whole."""

from __future__ import annotations

import re
from pathlib import Path

from tools.metrics_page import catalogue, described

ROOT = Path(__file__).parents[3]
_DEFINES = re.compile(r"^from prometheus_client import .*\b(?:Counter|Gauge|Histogram)\b", re.MULTILINE)


def test_every_metric_is_listed() -> None:
    """An operator finds whatever a process counts: no module that defines metrics is left out."""
    modules = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for folder in (ROOT / "libs", ROOT / "services")
        for path in sorted(folder.rglob("*.py"))
        if _DEFINES.search(path.read_text(encoding="utf-8"))
    ]
    told = {metric.name for metric in catalogue()}
    missing = {metric.name: module for module in modules for metric in described(module) if metric.name not in told}
    assert (len(modules) > 10, missing) == (True, {})
