"""The parts that a benchmark runs: a nats-server with file storage, services as processes, and a connection to them."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from nats.aio.client import Client

from ioa.adapters.nats.streams.topology import Topology
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.runtime.process import loop_factory
from ioa.telemetry.logs import configure_logs
from tests.rig.processes import ServiceProcesses, open_services

NO_QUOTAS = {
    "IOA_QUOTA_GOALS": "1000000",
    "IOA_RATE": "1000000",
    "IOA_BURST": "1000000000",
}
"""A few clients stand for many."""


@dataclass(frozen=True)
class Parts:
    """What runs, and a connection to it."""

    url: str
    server_pid: int
    client: Client
    services: ServiceProcesses
    folder: Path

    def pids(self, module: str) -> list[int]:
        """The processes of a service."""
        return [replica.pid for replica in self.services.running(module)]


@asynccontextmanager
async def open_parts(**replicas: int) -> AsyncIterator[Parts]:
    """Start a server and so many replicas of each service named, such as `ioa_router=2`; remove everything at the end."""
    with temporary_folder() as folder:
        async with (
            open_nats_server(folder / "nats", None) as server,
            open_connection(NatsSettings(server.url, "benchmark"), patience=timedelta(seconds=10)) as client,
            open_services(server.url, folder / "logs", {"IOA_LOG_LEVEL": "warning", **NO_QUOTAS}, show_logs=False) as services,
        ):
            await Topology().ensure(client.jetstream())
            for module, count in replicas.items():
                await services.start(module, replicas=count)
            yield Parts(server.url, server.pid, client, services, folder)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Open a folder that is removed afterwards, on the disk where the system keeps its temporary files."""
    with tempfile.TemporaryDirectory(prefix="ioa-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def run(benchmark: Coroutine[Any, Any, None]) -> None:
    """Run a benchmark on the same event loop as the services."""
    configure_logs("error", "console")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(benchmark)


def note(text: str) -> None:
    """Say on standard error what is going on."""
    sys.stderr.write(f"{text}\n")
