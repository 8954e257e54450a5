"""What the chart renders is valid for every Kubernetes that is still around."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import CHART, CI, MINORS, OLDEST, render
from tests.chart.schemas import faults

pytestmark = pytest.mark.chart

_CASES = [CHART / "values.yaml", *CI]


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("values", _CASES, ids=lambda path: path.stem)
def test_every_manifest_fits_the_schema(values: Path, minor: str) -> None:
    """No field is unknown or of a wrong type, and no kind is unknown, for any of the minors."""
    rendered = render(values, kubernetes=minor)

    assert [fault for one in rendered.manifests for fault in faults(one, minor)] == []


@pytest.mark.parametrize("values", _CASES, ids=lambda path: path.stem)
def test_no_two_manifests_are_the_same_object(values: Path) -> None:
    """The second of two would silently replace the first."""
    names = [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in render(values).manifests]

    assert sorted(names) == sorted(set(names))


def test_what_an_old_kubernetes_lacks_is_not_rendered_for_it() -> None:
    """1.20 has no policy/v1, autoscaling/v2 and retention of claims."""
    values = {"agentPools": [{"name": "a", "target": "a.py:a", "autoscaling": {"enabled": True, "by": "hpa"}}]}
    old, new = render(values, kubernetes=OLDEST), render(values)

    def versions(rendered: Any) -> list[object]:
        budget, scaler = rendered.all("PodDisruptionBudget")[0], rendered.one("HorizontalPodAutoscaler", "ioa-a")
        return [
            budget["apiVersion"],
            scaler["apiVersion"],
            "persistentVolumeClaimRetentionPolicy" in rendered.one("StatefulSet", "ioa-a")["spec"],
        ]

    assert (versions(old), versions(new)) == (
        ["policy/v1beta1", "autoscaling/v2beta2", False],
        ["policy/v1", "autoscaling/v2", True],
    )
