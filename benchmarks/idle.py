"""Measure what open groups cost in which nothing happens.

    python -m benchmarks.idle [--groups 1000] [--members 4] [--seconds 30]

The groups wait for a member that is away. So are the others, unless `--online` is given: then the same few agents take part in
all of the groups, follow them, and ask for news of them, ever more rarely.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack

from rich.table import Table

from benchmarks import machine
from benchmarks.density import open_worker
from benchmarks.parts import note, open_parts, run
from benchmarks.silent_groups import create_charter, launch
from ioa.adapters.nats.stores.open_groups import NatsMemberships
from ioa.protocol.ids import AgentId

_SERVICES = ("ioa_registry", "ioa_groups", "ioa_router")


async def benchmark(groups: int, members: int, seconds: float, *, online: bool) -> None:
    """Open groups, wait until all is quiet, and measure every process."""
    async with open_parts(**dict.fromkeys(_SERVICES, 1)) as parts, AsyncExitStack() as stack:
        worker = await stack.enter_async_context(open_worker(parts, members)) if online else None
        ids = [AgentId("away"), *(AgentId(f"idle-{number}") for number in range(members))]
        charters = [create_charter(ids, 10) for _ in range(groups)]
        if online:
            memberships = NatsMemberships(parts.client)
            for charter in charters:
                await memberships.add(ids[1:], charter.comm_id)
        note(f"opening {groups} groups")
        await launch(parts.client, charters)
        await asyncio.sleep(seconds / 2)
        counted = {name: parts.pids(name) for name in _SERVICES} | {"nats-server": [parts.server_pid]}
        if worker is not None:
            counted["worker"] = [worker]
        note(f"doing nothing for {seconds:g} s")
        with machine.measured(counted) as spent:
            await asyncio.sleep(seconds)
        table = Table("process", "CPU of one core", "memory")
        for name, value in spent.by_part.items():
            memory = sum(map(machine.resident_bytes, counted[name])) / 1024**2
            table.add_row(name, f"{value / seconds * 100:.2f} %", f"{memory:.0f} MB")
    machine.console.print(table)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--online", action="store_true", help="let the members be there, too")
    options = parser.parse_args()
    with_whom = f"{options.members} members {'online' if options.online else 'away'}"
    machine.console.print(f"{options.groups} groups, open and idle, {with_whom}, on {machine.describe()}")
    run(benchmark(options.groups, options.members, options.seconds, online=options.online))


if __name__ == "__main__":
    main()
