"""One system with short limits and its agents, started as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.client.client import Client, open_system
from tests.e2e.command_line import CommandLine, running_system
from tests.rig.deadline import eventually

AGENTS = Path(__file__).parent / "drilled_agents.py"
SHORT_LIMITS = {
    "IOA_FLOOR_TIMEOUT": "1",
    "IOA_CONCLUSION_TIMEOUT": "5",
    "IOA_PAUSE_TIMEOUT": "5",
    "IOA_TASK_LEASE": "0.9",
}
_PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True)
class Drill:
    """The running system, a command line beside it, and the folder in which the agents' tools record what they do."""

    url: str
    data: Path
    command: CommandLine
    folder: Path

    def record(self, name: str) -> list[str]:
        """The lines of a tool's record."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """A system whose limits are seconds, and agents that reach them."""
    folder = tmp_path_factory.mktemp("drill")
    command = CommandLine(folder, {**SHORT_LIMITS, "IOA_DATA": str(folder / "data")})
    with running_system(command) as running, (folder / "agents.log").open("ab") as log:
        env = {
            **os.environ,
            "IOA_NATS_URL": running.url,
            "IOA_DATA": str(running.data),
            "IOA_AGENT_DATA": str(folder / "memory"),
            "DRILL_FOLDER": str(folder),
        }
        env["IOA_SANDBOX"] = "none"  # what the Python runner runs tells its process id by a file outside of its box
        with subprocess.Popen([sys.executable, str(AGENTS)], env=env, stdout=log, stderr=log) as agents:
            try:
                yield Drill(running.url, running.data, command, folder)
            finally:
                agents.terminate()
                code = agents.wait(_PATIENCE.total_seconds())
        assert code == 0, (folder / "agents.log").read_text()[-4_000:]


@pytest.fixture
async def system(drill: Drill) -> AsyncIterator[Client]:
    """A connection to the system, once all agents are there."""
    async with open_system(NatsSettings(drill.url, "e2e-limits", data=drill.data), patience=timedelta(seconds=10)) as opened:
        await eventually(lambda: opened.agents(online_only=True), until=lambda there: len(there) == 6, within=_PATIENCE)
        yield opened
