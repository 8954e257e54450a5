"""One system for all tests of agents' processes, and a way to start such a process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.client.client import Client, open_system
from tests.e2e.command_line import CommandLine, Running, running_system
from tests.rig.deadline import eventually

AGENTS = Path(__file__).parent / "agents.py"
_PATIENCE = timedelta(seconds=60)


class Stage:
    """The system, and the agents' processes of one test."""

    def __init__(self, system: Client, running: Running, folder: Path) -> None:
        self.system = system
        self._env = {**os.environ, "NOTES": str(folder)}
        self._env |= {"IOA_NATS_URL": running.url, "IOA_DATA": str(running.data)}
        self.folder = folder

    @asynccontextmanager
    async def agent(self, name: str, *, drain: int = 1) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run an agent until the block ends; `drain` is in seconds."""
        env = {**self._env, "IOA_AGENT_DATA": str(self.folder / "agents"), "IOA_DRAIN": str(drain)}
        with (self.folder / "agents.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(sys.executable, str(AGENTS), name, env=env, stdout=log, stderr=log)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def runs(self) -> list[list[str]]:
        """Every run that began: process, task, attempt, words."""
        path = self.folder / "runs"
        return [line.split(" ", 3) for line in path.read_text().splitlines()] if path.exists() else []

    def log(self) -> str:
        """What the agents' processes have written."""
        return (self.folder / "agents.log").read_text()

    async def ready(self, agent_id: str, *, times: int = 1) -> None:
        """Wait until processes of this test have said so often that an agent is ready."""
        await eventually(lambda: self._readies().count(agent_id), until=lambda count: count >= times, within=_PATIENCE)

    def _readies(self) -> list[str]:
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [line["agent_id"] for line in lines if line["event"] == "agent_ready"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A system without agents."""
    folder = tmp_path_factory.mktemp("processes")
    with running_system(CommandLine(folder), "--data", folder / "data") as running:
        yield running


@pytest.fixture
async def stage(running: Running, tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage for one test."""
    async with AsyncExitStack() as stack:
        settings = NatsSettings(running.url, "e2e-processes", data=running.data)
        system = await stack.enter_async_context(open_system(settings, patience=timedelta(seconds=10)))
        yield Stage(system, running, tmp_path)
