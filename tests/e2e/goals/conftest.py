"""One whole system for the goals of a module, started as a user starts it, and a world that its agents have never seen."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.adapters.nats.wire.connection import NatsSettings
from ioa.client.client import Client, open_system
from ioa.runtime.settings import ProcessSettings, settings_from
from tests.e2e.goals.world import World, create_world

POOL = Path(__file__).parents[3] / "examples" / "pool.toml"
_START_SECONDS = 90


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Inputs that no agent was written for."""
    return create_world(2024, tmp_path_factory.mktemp("world"))


@contextmanager
def run_system(data: Path, pool: Path | None) -> Iterator[dict[str, str]]:
    """Run `ioa up` and give the variables that lead to it once it is ready; it ends cleanly on SIGTERM."""
    command = [sys.executable, "-m", "ioa.cli", "up", "--data", str(data), "--port", "0"]
    command += ["--pool", str(pool), "--allow-code"] if pool is not None else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        watchdog = threading.Timer(_START_SECONDS, process.kill)
        watchdog.start()
        assert process.stdout is not None
        url = next((line.split()[1] for line in process.stdout if line.startswith("ready ")), None)
        watchdog.cancel()
        assert url is not None, f"the system did not start; see {data}/logs"
        try:
            yield {"IOA_NATS_URL": url, "IOA_DATA": str(data)}
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(30)
        assert code == 0


@pytest.fixture(scope="module")  # left running beside all other tests it would take a tenth of a core
def way_to_the_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables that lead to a system with the example agents."""
    with run_system(tmp_path_factory.mktemp("system"), POOL) as way:
        yield way


def connection_by(way: dict[str, str]) -> NatsSettings:
    """The settings of a connection to a system, by the variables that lead to it."""
    return settings_from(ProcessSettings, way).nats("e2e-goals")


@pytest.fixture
async def system(way_to_the_system: dict[str, str]) -> AsyncIterator[Client]:
    """A connection to the running system."""
    async with open_system(connection_by(way_to_the_system), patience=timedelta(seconds=10)) as opened:
        yield opened
