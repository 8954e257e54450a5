"""Every example agent that ships is a program that joins a system and leaves it again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.client.client import open_system
from ioa.local.pool import read_pool
from tests.e2e.goals.conftest import POOL, connection_by, run_system
from tests.rig.deadline import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def way_to_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that lead to a system without agents."""
    with run_system(tmp_path_factory.mktemp("empty"), None) as way:
        yield way


async def test_every_example_joins_by_the_command_alone(way_to_nobody: dict[str, str], tmp_path: Path) -> None:
    """`ioa agent run FILE:agent` with nothing but where NATS is makes an agent of each example; SIGTERM ends it cleanly."""
    unconfined = {"IOA_SANDBOX": "none"}  # so that all of them join on any machine
    targets = [agent.target for agent in read_pool(POOL, {"IOA_LLM_MODEL": "any", **unconfined}, allow_code=True).agents]
    env = {
        **os.environ,
        **unconfined,
        **way_to_nobody,
        "IOA_AGENT_DATA": str(tmp_path / "memory"),
        "IOA_LOG_LEVEL": "error",
    }
    command = (sys.executable, "-m", "ioa.cli", "agent", "run")
    processes = [await asyncio.create_subprocess_exec(*command, target, env=env, cwd=tmp_path) for target in targets]
    try:
        async with open_system(connection_by(way_to_nobody), patience=timedelta(seconds=10)) as system:
            online = await eventually(
                lambda: system.agents(online_only=True),
                until=lambda agents: len(agents) >= len(targets),
                within=timedelta(seconds=60),
            )
    finally:
        for process in processes:
            process.terminate()
        async with asyncio.timeout(30):
            codes = [await process.wait() for process in processes]

    names = {status.card.agent_id.replace("-", "_") for status in online}
    assert (names, set(codes)) == ({Path(target.rpartition(":")[0]).stem for target in targets}, {0})
