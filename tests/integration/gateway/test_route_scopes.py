"""The authorisation contract of the gateway: every route × every scope."""

from __future__ import annotations

import httpx

from tests.integration.gateway.route_scopes import GOLDEN, measure
from tests.integration.gateway.serving import Door


async def test_scopes_of_each_route_match_the_golden_table(http: httpx.AsyncClient, door: Door) -> None:
    """A route is closed to each key that lacks a scope, and to unknown keys: `python -m tests.integration.gateway.route_scopes`."""
    assert (await measure(http, door)).splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()
