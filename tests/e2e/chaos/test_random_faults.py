"""Random faults under load: no goal is lost, run twice in effect, or left hanging, and every answer is right."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.e2e.chaos.random_faults import find_faults

pytestmark = [pytest.mark.chaos, pytest.mark.blocks_loop, pytest.mark.timeout(900)]


async def test_random_faults_leave_every_goal_with_its_answer(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Break parts at random. `--chaos-seconds 300 --chaos-seed 7 --chaos-nodes 3 --chaos-tenants 2` repeats a longer run."""
    seconds, seed, nodes, tenants = (pytestconfig.getoption(f"chaos_{name}") for name in ("seconds", "seed", "nodes", "tenants"))
    seed = secrets.randbelow(10**6) if seed is None else seed
    print(f"seed {seed}, {seconds} s, {nodes} nats-server(s), {tenants} tenant(s) with credentials")
    assert await find_faults(tmp_path, seconds, seed, nodes, tenants) == []
