"""Measure how long a system takes from nothing to its first result, and what memory it takes.

    python -m benchmarks.cold_start [--starts 3] [--agents 1] [--pool examples/pool.toml]

From `ioa up` to its line `ready`, on an empty folder with a pool of echoing agents; then from the publication of the first goal to
its result. Another pool is only started. The limit in the same run is nats-server alone. Memory is the PSS of all processes, three
seconds later.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import run, temporary_folder
from ioa.adapters.nats.wire.connection import NatsSettings, open_connection
from ioa.adapters.nats.wire.embedded_server import open_nats_server
from ioa.client.client import open_system
from ioa.protocol.goal_order import GoalOrder

_SETTLING = timedelta(seconds=3)

_AGENT = """
from ioa import Agent

agent = Agent("echo", description="Repeats what it is told.", examples=["repeat the word birch", "say the word amber"])


@agent.task
def run(task: str) -> str:
    return task
"""


async def measure_start(folder: Path, agents: int, pool: Path | None) -> tuple[float, int, list[float]]:
    """Return the seconds to `ready`, the bytes of memory, and the seconds of two goals, the first and the second."""
    (folder / "echo.py").write_text(_AGENT)
    (folder / "pool.toml").write_text(f'[[agents]]\ntarget = "echo.py:agent"\nreplicas = {agents}\n')
    command = [sys.executable, "-m", "ioa.cli", "up", "--pool", str(pool or folder / "pool.toml"), "--data", str(folder / "data")]
    started = time.perf_counter()
    with (folder / "log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            "--port",
            "0",
            "--json",
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        assert process.stdout is not None
        ready = json.loads(await process.stdout.readline())
        to_ready = time.perf_counter() - started
        async with open_system(
            NatsSettings(ready["url"], "benchmark", data=folder / "data"), patience=timedelta(seconds=5)
        ) as system:
            goals = []
            for word in () if pool else ("birch", "cedar"):
                launched = time.perf_counter()
                result = await system.wait_for_result(await system.submit(GoalOrder(goal=f"repeat the word {word}")))
                goals.append(time.perf_counter() - launched)
                assert result.reason == "concluded", result
        await asyncio.sleep(_SETTLING.total_seconds())
        memory = await asyncio.to_thread(machine.proportional_bytes, process.pid)
        return to_ready, memory, goals
    finally:
        process.terminate()
        await process.wait()


async def measure_server(folder: Path) -> tuple[float, int]:
    """Return the seconds until nats-server alone accepts connections, and its bytes of memory."""
    started = time.perf_counter()
    async with open_nats_server(folder / "nats", None) as server, open_connection(NatsSettings(server.url, "benchmark")):
        to_ready = time.perf_counter() - started
        await asyncio.sleep(_SETTLING.total_seconds())
        return to_ready, await asyncio.to_thread(machine.proportional_bytes, server.pid)


async def benchmark(starts: int, agents: int, pool: Path | None) -> None:
    """Start a system several times, each in its own folder."""
    table = Table("start", "to ready", "memory", "first goal", "second goal", "load")
    for number in range(1, starts + 1):
        with temporary_folder() as folder:
            to_ready, memory, goals = await measure_start(folder, agents, pool)
        times = [f"{seconds:.2f} s" for seconds in goals] or ["", ""]
        table.add_row(str(number), f"{to_ready:.2f} s", f"{memory / 1e6:.0f} MB", *times, machine.load())
        with temporary_folder() as folder:
            to_ready, memory = await measure_server(folder)
        table.add_row("nats-server", f"{to_ready:.2f} s", f"{memory / 1e6:.0f} MB", "", "", machine.load())
    machine.console.print(table)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--pool", type=Path)
    options = parser.parse_args()
    machine.console.print(f"Cold start on {machine.describe()}")
    run(benchmark(options.starts, options.agents, options.pool))


if __name__ == "__main__":
    main()
