"""Measure what one crowded group costs the others: small goals and deadlines, alone and beside it.

    python -m benchmarks.overload [--tasks 64 192 320 1000] [--seconds 20] [--smoke]

One router, one registry, one group setup, with file storage. One group gives out so many asynchronous tasks, 32 at a time, to three
members, and each takes so many seconds. Beside it 100 goals a minute come for a team of two others, which say something and do one
task; and every ten seconds one that only its deadline ends. The agents run in two processes, one for each team.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from datetime import timedelta

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import Parts, note, open_parts, run
from ioa.protocol.goals import Reason
from tests.rig.crowd import Crowd, Fared, open_crowd

_EVERY = timedelta(seconds=0.6)
_STUCK_EVERY = timedelta(seconds=10)
_ALONE_SECONDS = 20.0
_PARTS = ("ioa_router", "ioa_registry", "ioa_groups")


async def measure_alone(crowd: Crowd, seconds: float) -> list[float]:
    """Let small goals come for a while with nothing beside them; return how long each took."""

    async def idle() -> Fared:
        await asyncio.sleep(seconds)
        return await crowd.small(-1)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(idle())
        beside = await crowd.beside(running, every=_EVERY)
    return [one.seconds for one in beside.small]


async def measure(parts: Parts, crowd: Crowd, tasks: int, seconds: float, limit: float, alone: Sequence[float]) -> list[str]:
    """Take one crowded group to its end and return a row of figures."""
    pids = {part: parts.pids(part) for part in _PARTS} | {"server": [parts.server_pid]}
    with machine.measured(pids) as spent:
        async with asyncio.TaskGroup() as group:
            big = group.create_task(crowd.crowded(tasks, seconds, timeout=timedelta(seconds=limit)))
            beside = await crowd.beside(big, every=_EVERY, stuck_every=_STUCK_EVERY)
    took = [one.seconds for one in beside.small]
    unfinished = [one for one in beside.small if one.result.reason is not Reason.CONCLUDED]
    late = max([one.late_seconds for one in beside.stuck], default=0.0)
    ended = big.result()
    return [
        f"{tasks:,}",
        f"{ended.seconds:.1f} s {ended.result.reason}",
        f"{len(took)}" + (f", {len(unfinished)} not concluded" if unfinished else ""),
        *(f"{machine.percentile(alone, share):.2f}" for share in (0.5, 0.99)),
        *(f"{machine.percentile(took, share):.2f}" for share in (0.5, 0.99)),
        f"{late:.2f}",
        *(f"{spent.by_part[part]:.1f}" for part in ("ioa_router", "server")),
        machine.load(),
    ]


async def benchmark(tasks: Sequence[int], seconds: float, limit: float, alone_seconds: float) -> None:
    """Measure each size, one after the other, in one system."""
    table = Table("tasks", "big goal", "small goals", "p50 alone", "p99", "p50 beside", "p99", "late", "router", "server", "load")
    async with (
        open_parts(**dict.fromkeys(_PARTS, 1)) as parts,
        open_crowd(parts.client, parts.url, parts.folder / "agents") as crowd,
    ):
        await measure_alone(crowd, 3.0)
        note("small goals alone")
        alone = await measure_alone(crowd, alone_seconds)
        for count in tasks:
            note(f"{count} tasks")
            table.add_row(*await measure(parts, crowd, count, seconds, limit, alone))
    machine.console.print(table)
    machine.console.print("small goals, late (the latest goal that its deadline ended): s. router, server: CPU-s.")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, nargs="+", default=[64, 192, 320, 1_000])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each task takes")
    parser.add_argument("--limit", type=float, default=300.0, help="the crowded goal's deadline in seconds")
    parser.add_argument("--smoke", action="store_true", help="only see that it runs: 64 tasks of two seconds")
    options = parser.parse_args()
    machine.console.print(f"Overload on {machine.describe()}")
    if options.smoke:
        run(benchmark([64], 2.0, 60.0, 3.0))
    else:
        run(benchmark(options.tasks, options.seconds, options.limit, _ALONE_SECONDS))


if __name__ == "__main__":
    main()
