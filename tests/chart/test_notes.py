"""The notes that helm prints after an installation say how to publish a first goal."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.chart.rendering import CHART, render

pytestmark = pytest.mark.chart

_AS_AN_OBJECT = """apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data:
  notes: |
    {{- tpl (.Files.Get "NOTES.txt") . | nindent 4 }}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """The chart with its notes as an object: helm renders the notes themselves only for a cluster."""
    copy = tmp_path / "ioa"
    shutil.copytree(CHART, copy)
    shutil.move(copy / "templates" / "NOTES.txt", copy / "NOTES.txt")
    (copy / "templates" / "notes.yaml").write_text(_AS_AN_OBJECT)
    return copy


def test_they_tell_how_to_publish_a_first_goal(chart: Path) -> None:
    """With the user's seed, through a forwarded port."""
    notes = _notes(chart, {})

    assert [line for line in notes.splitlines() if line.startswith("  ")] == [
        "  helm test ioa --namespace agents",
        "  kubectl --namespace agents get secret ioa-user-nats --output jsonpath='{.data.seed}' | base64 --decode > user.seed",
        "  kubectl --namespace agents port-forward service/ioa-nats 4222 &",
        "  kubectl --namespace agents get secret ioa-nats-tls --output jsonpath='{.data.ca\\.crt}' | base64 --decode > ca.crt",
        "  nats --server tls://127.0.0.1:4222 --tlsca ca.crt --nkey user.seed pub ioa.v1.goal.user '15 / 100 * 240'",
        "  IOA_NATS_URL=tls://127.0.0.1:4222 IOA_NATS_CA=ca.crt IOA_NATS_SEED=user.seed ioa run '15 / 100 * 240'",
        "  kubectl --namespace agents scale statefulset/ioa-calculator --replicas=3   # at most 10",
    ]


def _notes(chart: Path, values: Mapping[str, Any] | Path) -> str:
    return str(render(values, chart=chart).one("ConfigMap", "notes")["data"]["notes"])
