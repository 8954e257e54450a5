"""The manifests of the chart are as recorded."""

from __future__ import annotations

import pytest

from tests.chart.golden import manifests, recorded

pytestmark = pytest.mark.chart


def test_manifests_of_each_set_of_values_match_the_golden_file() -> None:
    """A change of any manifest is visible: `python -m tests.chart.golden` writes the golden file."""
    assert sorted(manifests()) == recorded()
