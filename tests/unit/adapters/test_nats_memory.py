"""The chart and the rendered authorization have the same connection limits."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ioa.adapters.nats.auth.server_config import AccountLimits

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("side", ["services", "agents", "users"])
def test_the_chart_and_what_is_rendered_without_it_bound_connections_alike(side: str) -> None:
    """Who runs nats-server without the chart has as many, if nothing else is said."""
    said = yaml.safe_load((_ROOT / "helm/ioa/values.yaml").read_text(encoding="utf-8"))["quotas"]["connections"]
    assert said[side] == getattr(AccountLimits(), f"{side.removesuffix('s')}_connections")
