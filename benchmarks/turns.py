"""Measure what a turn of a group costs, and how long it takes.

    python -m benchmarks.turns [--members 4 8 32] [--turns 40 400 4000] [--agents 4:400] [--peers 40 400]

One group at a time, file storage, every message acknowledged. The members are silent: they say 200 bytes and think nothing. Those
"on the wire" only pass the floor on, which shows the path through router and server; the "agents" are real clients with their
memory in SQLite. A hop goes from a member's saying something to the next one's seeing it.

`--peers` measures the group chats of other frameworks with silent agents in the same run, each in its own environment from PyPI.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence

from rich.table import Table

from benchmarks import machine
from benchmarks.parts import Parts, note, open_parts, run
from benchmarks.peers import measure_peers
from benchmarks.silent_agents import measure_agents
from benchmarks.silent_groups import open_silent_groups

_WARM_UP_TURNS = 200


async def measure_wire(parts: Parts, members: int, turns: int) -> list[str]:
    """Take one group through its turns and return a row of figures."""
    async with open_silent_groups(parts.url, groups=1, members=members, turns=turns) as silent:
        started = time.perf_counter()
        with machine.measured(parts_of(parts)) as spent:
            await silent.talk()
        return row(f"{members} on the wire", turns, time.perf_counter() - started, spent.by_part, silent.hops)


def parts_of(parts: Parts) -> Mapping[str, Sequence[int]]:
    """Whose CPU is counted as what."""
    return {"router": parts.pids("ioa_router"), "server": [parts.server_pid], "clients": [os.getpid()]}


def row(who: str, turns: int, seconds: float, by_part: Mapping[str, float], hops: Sequence[float]) -> list[str]:
    """Format what was measured."""
    few = max(len(hops) // 10, 1)
    cpu = [f"{by_part[part] / turns * 1000:.3f}" for part in ("router", "server", "clients")]
    times = [machine.percentile(hops, 0.5), machine.percentile(hops, 0.99), machine.percentile(hops[:few], 0.5)]
    times.append(machine.percentile(hops[-few:], 0.5))
    return [who, f"{turns:,}", *cpu, f"{turns / seconds:,.0f}", *(f"{value * 1000:.2f}" for value in times), machine.load()]


async def benchmark(members: Sequence[int], turns: Sequence[int], agents: Sequence[tuple[int, int]]) -> None:
    """Measure every combination, one after the other, on one server and one router."""
    table = Table("members", "turns", "router", "server", "clients", "turns/s", "p50", "p99", "first 10 %", "last 10 %", "load")
    async with open_parts(ioa_router=1, ioa_groups=1 if agents else 0, ioa_registry=1 if agents else 0) as parts:
        await measure_wire(parts, 4, _WARM_UP_TURNS)
        for count in members:
            for number in turns:
                note(f"{count} members, {number} turns")
                table.add_row(*await measure_wire(parts, count, number))
        for count, number in agents:
            note(f"{count} agents, {number} turns")
            measured = await measure_agents(parts, count, number, parts_of(parts))
            table.add_row(*row(f"{count} agents", number, measured.seconds, measured.by_part, measured.hops))
    machine.console.print(table)
    machine.console.print("router, server, clients: CPU-ms per turn. p50, p99, first and last tenth (medians): ms per hop.")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--members", type=int, nargs="+", default=[4, 8, 32])
    parser.add_argument("--turns", type=int, nargs="+", default=[40, 400, 4_000])
    parser.add_argument("--agents", type=pair, nargs="*", default=[(4, 40), (4, 400), (4, 4_000)], metavar="AGENTS:TURNS")
    parser.add_argument(
        "--peers",
        type=int,
        nargs="*",
        default=[40, 400, 2_000],
        metavar="TURNS",
        help="turns of the group chats of AutoGen, Agent Framework and LangGraph",
    )
    options = parser.parse_args()
    machine.console.print(f"Group turns on {machine.describe()}")
    run(benchmark(options.members, options.turns, options.agents))
    if options.peers:
        measure_peers(options.members[0], options.peers)


def pair(text: str) -> tuple[int, int]:
    """Read `4:400`."""
    agents, _, turns = text.partition(":")
    return int(agents), int(turns)


if __name__ == "__main__":
    main()
