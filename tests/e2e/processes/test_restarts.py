"""Restarts at once after SIGTERM and SIGKILL: an agent, and `ioa up`, finish every task that was interrupted."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.client.client import open_system
from ioa.protocol.goal_order import GoalOrder
from ioa.protocol.goals import Reason
from ioa.protocol.ids import AgentId
from tests.e2e.command_line import CommandLine, is_alive
from tests.e2e.processes.conftest import AGENTS
from tests.rig.deadline import eventually
from tests.rig.ports import held_ports

pytestmark = pytest.mark.slow

_PATIENCE = timedelta(seconds=60)
_SIGNALS = [signal.SIGTERM, signal.SIGKILL]


@pytest.mark.nightly
@pytest.mark.parametrize("number", _SIGNALS)
async def test_system_restarted_at_once_finishes_all_goals(tmp_path: Path, number: signal.Signals) -> None:
    """The new `ioa up` waits for the folder and the ports of the old one; each agent keeps its id and runs its tasks again."""
    command = CommandLine(tmp_path, {"IOA_DRAIN": "5", "IOA_TASKS_AT_ONCE": "12", "NOTES": str(tmp_path)})
    targets = "".join(f'[[agents]]\ntarget = "{AGENTS}:waiter{agent}"\n' for agent in ("", "_b", "_c")) + 'process = "own"\n'
    (tmp_path / "pool.toml").write_text(targets, encoding="utf-8")
    with held_ports(3) as (port, http, metrics):
        options = ["--json", "--port", port, "--web", "--web-port", http, "--pool", "pool.toml", "--metrics", metrics]

        def start_system() -> subprocess.Popen[str]:
            return command.start("up", *map(str, options))

        async with _ended_at_exit(start_system()) as first:
            pids = await asyncio.to_thread(_pids_when_ready, first)
            async with open_system(_settings(tmp_path, port), patience=_PATIENCE) as system:
                orders = [
                    GoalOrder(goal=f"wait for the file, {goal}", agent=AgentId(agent), timeout=120)
                    for goal, agent in enumerate(["waiter", "waiter_b", "waiter_c"] * 4)
                ]
                goals = [await system.submit(order) for order in orders]
                await eventually(lambda: _runs(tmp_path), lambda runs: len(runs) >= len(goals), within=_PATIENCE)
            first.send_signal(number)
            async with _ended_at_exit(start_system()) as second:
                await asyncio.to_thread(_pids_when_ready, second)
                left = [pid for pid in pids if is_alive(pid)]
                (tmp_path / "go").touch()
                async with open_system(_settings(tmp_path, port), patience=_PATIENCE) as system, asyncio.timeout(100):
                    results = [await system.wait_for_result(goal_id) for goal_id in goals]

    assert [result.reason for result in results] == [Reason.CONCLUDED] * len(goals)
    assert ({result.content for result in results}, left) == ({"waited"}, [])
    assert sorted(path.name for path in (tmp_path / ".ioa" / "agents").iterdir()) == ["waiter", "waiter_b", "waiter_c"]


def _settings(folder: Path, port: int) -> NatsSettings:
    return NatsSettings(f"nats://127.0.0.1:{port}", "e2e-restarts", data=folder / ".ioa")


def _runs(folder: Path) -> list[str]:
    path = folder / "runs"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _pids_when_ready(process: subprocess.Popen[str]) -> list[int]:
    """Read the output of `ioa up` until it is ready; return the ids of its processes."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate(timeout=60)
    return list(json.loads(line)["pids"].values())


@asynccontextmanager
async def _ended_at_exit(process: subprocess.Popen[str]) -> AsyncIterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.communicate, timeout=60)
