"""Measure what an idle agent costs in a worker process that hosts many.

    python -m benchmarks.density [--agents 1 100 1000] [--seconds 15]

The worker is `ioa agent run FILE.py:agent --replicas N`: each replica is registered, renews its lease, waits for goals and has its
own memory. The limit in the same run is a process with one subscription for each agent and nothing else (`bare_agents`). CPU is in
percent of a core, during some seconds without goals.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import Parts, note, open_parts, run
from benchmarks.silent_agents import until_online
from ioa.client.client import Client
from ioa.protocol.ids import AgentId

_AGENT = """
from ioa import Agent

agent = Agent("idle", description="Waits.", examples=["wait"])


@agent.task
def run(task: str) -> str:
    return task
"""


@asynccontextmanager
async def open_worker(parts: Parts, agents: int) -> AsyncIterator[int]:
    """Run a worker with this number of agents, yield its process id when all are online, and end it."""
    folder = parts.folder / f"worker-{agents}"
    folder.mkdir()
    (folder / "idle.py").write_text(_AGENT)
    with (folder / "log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ioa.cli", "agent", "run", str(folder / "idle.py:agent")),
            *("--replicas", str(agents), "--url", parts.url),
            env={**os.environ, "IOA_AGENT_DATA": str(folder / "agents"), "IOA_LOG_LEVEL": "warning"},
            stdout=log,
            stderr=log,
        )
    try:
        await until_online(Client(parts.client), [AgentId(f"idle-{number}") for number in range(agents)])
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def open_bare_agents(parts: Parts, agents: int) -> AsyncIterator[int]:
    """Run the limit, and yield its process id when it has subscribed."""
    command = (sys.executable, "-m", "benchmarks.bare_agents", parts.url, str(agents))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        yield process.pid
    finally:
        process.terminate()
        await process.wait()


async def benchmark(agents: Sequence[int], seconds: float) -> None:
    """Measure one worker after the other, each on its own system."""
    table = Table("process", "agents", "online after", "memory", "per agent", "its CPU", "registry CPU", "server CPU", "load")
    first: dict[str, tuple[int, int]] = {}
    for count in agents:
        for name, opened in (("worker", open_worker), ("bare", open_bare_agents)):
            note(f"{name}, {count} agents")
            async with open_parts(ioa_registry=1, ioa_groups=1, ioa_router=1) as parts:
                started = time.perf_counter()
                async with opened(parts, count) as pid:
                    joined = time.perf_counter() - started
                    await asyncio.sleep(seconds)
                    counted = {"process": [pid], "registry": parts.pids("ioa_registry"), "server": [parts.server_pid]}
                    with machine.measured(counted) as spent:
                        await asyncio.sleep(seconds)
                    memory = machine.resident_bytes(pid)
            fewest, base = first.setdefault(name, (count, memory))
            each = f"{(memory - base) / (count - fewest) / 1024:.0f} KB" if count > fewest else "(the base)"
            cpu = [f"{value / seconds * 100:.1f} %" for value in spent.by_part.values()]
            table.add_row(name, f"{count:,}", f"{joined:.1f} s", f"{memory / 1024**2:.0f} MB", each, *cpu, machine.load())
    machine.console.print(table)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 100, 1_000])
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    machine.console.print(f"Density on {machine.describe()}")
    run(benchmark(options.agents, options.seconds))


if __name__ == "__main__":
    main()
