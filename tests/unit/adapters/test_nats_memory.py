"""What nats-server may be made to keep fits into the container that the chart gives it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ioa.adapters.nats.authorization import AccountLimits
from ioa.runtime.control_plane import ControlPlaneSettings

_ROOT = Path(__file__).parents[3]
_ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<gb>\d+\.\d+) \|", re.MULTILINE)
_OF_A_CONNECTION = 9_000_000
"""How much lies there for a connection that reads nothing; `integration/adapters/test_nats_server.py` measures it."""


def test_all_that_it_may_be_made_to_keep_fits_into_its_container() -> None:
    """The page of bounds adds it up; else anybody with a key, by what he may, has every server of a cluster killed."""
    _, _, section = (_ROOT / "docs/threats/bounds.md").read_text(encoding="utf-8").partition("## The memory of nats-server\n")
    rows = {row["what"]: float(row["gb"]) for row in _ROW.finditer(section)}
    values = yaml.safe_load((_ROOT / "helm/ioa/values.yaml").read_text(encoding="utf-8"))
    said, nats = values["quotas"]["connections"], values["nats"]
    whole, gibibytes = sum(rows.values()), int(nats["resources"]["limits"]["memory"].removesuffix("Gi"))
    assert len(rows) > 4
    assert whole * 10**9 <= gibibytes * 2**30
    assert rows["connections that read nothing"] * 10**9 >= (said["agents"] + said["users"]) * _OF_A_CONNECTION
    assert int(nats["maxPending"].removesuffix("MB")) * 2**20 < _OF_A_CONNECTION


@pytest.mark.parametrize("side", ["services", "agents", "users"])
def test_the_chart_and_what_is_rendered_without_it_bound_connections_alike(side: str) -> None:
    """Who runs nats-server without the chart has as many, if nothing else is said."""
    said = yaml.safe_load((_ROOT / "helm/ioa/values.yaml").read_text(encoding="utf-8"))["quotas"]["connections"]
    assert said[side] == getattr(AccountLimits(), f"{side.removesuffix('s')}_connections")
    assert said["each"] == ControlPlaneSettings().quota_connections
