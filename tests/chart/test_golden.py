"""The manifests of each set of values are as recorded, and valid for each supported Kubernetes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.chart.golden import manifests, recorded
from tests.chart.rendering import CHART, MINORS, SETS_OF_VALUES, render, tool
from tests.chart.schemas import faults

pytestmark = pytest.mark.chart


def test_chart_passes_the_lint_of_helm() -> None:
    """A warning is an error."""
    subprocess.run([tool("helm"), "lint", "--strict", "--quiet", CHART], check=True)


def test_manifests_of_each_set_of_values_match_the_golden_file() -> None:
    """A change of any manifest is visible: `python -m tests.chart.golden` writes the golden file."""
    assert sorted(manifests()) == recorded()


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("values", SETS_OF_VALUES, ids=lambda path: path.stem)
def test_every_manifest_fits_the_schema_and_has_a_name_of_its_own(values: Path, minor: str) -> None:
    """No kind or field is unknown, none has a wrong type, and no object would replace another."""
    rendered = render(values, kubernetes=minor).manifests
    names = [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in rendered]

    assert ([fault for one in rendered for fault in faults(one, minor)], len(set(names))) == ([], len(names))
