"""Measure the exact index by the number of its agents: latency, CPU time and memory.

    python -m benchmarks.discovery_scale [--agents 1500 20000] [--examples 4] [--queries 200]

Synthetic agents (`discovery_synthetic`) are written as discovery writes them; then needs are searched sequentially. The times
are of `ExactIndex.search` for a need whose vector is known: `benchmarks.discovery` measures the embedding.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import asdict, dataclass

from rich.table import Table

from benchmarks import machine
from benchmarks.discovery_figures import quantile
from benchmarks.discovery_synthetic import DIMENSION, Town
from benchmarks.parts import run
from ioa.protocol.agents.search import Filters
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.searcher import PREFETCH

_BATCH = 64


@dataclass(frozen=True)
class Measured:
    """Figures of an index size. Times of needs in milliseconds; peak memory of this process in megabytes."""

    agents: int
    points: int
    fill_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    tagged_p50_ms: float
    peak_mb: int


async def measure(town: Town, queries: int) -> Measured:
    """Fill an index, and search it."""
    points, writing = 0, 0.0
    index = ExactIndex(DIMENSION)
    for entries in town.entries(_BATCH):
        started = time.perf_counter()
        await index.put(entries)
        writing += time.perf_counter() - started
        points += sum(1 + len(entry.examples) for entry in entries)
    timed: list[list[float]] = []
    cpu = machine.create_cpu_clock()
    spent = 0.0
    for filters in (Filters(), Filters(tags=("tag-3",))):
        timed.append([])
        before = cpu()
        for need in town.queries(queries, PREFETCH, filters):
            started = time.perf_counter()
            await index.search(need)
            timed[-1].append(1_000 * (time.perf_counter() - started))
        spent = spent or cpu() - before
    return Measured(
        agents=town.agents,
        points=points,
        fill_s=round(writing, 1),
        p50_ms=round(quantile(timed[0], 0.5), 2),
        p99_ms=round(quantile(timed[0], 0.99), 2),
        cpu_ms=round(1_000 * spent / queries, 2),
        tagged_p50_ms=round(quantile(timed[1], 0.5), 2),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_000,
    )


async def benchmark(options: argparse.Namespace) -> None:
    """Measure each size and print a table."""
    measured = [asdict(await measure(Town(agents, options.examples), options.queries)) for agents in options.agents]
    table = Table("", *(f"{row['agents']:,}" for row in measured))
    for name in list(measured[0])[1:]:
        table.add_row(name.replace("_", " "), *(f"{row[name]:,}" for row in measured))
    machine.console.print(table)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[1_500, 20_000])
    parser.add_argument("--examples", type=int, default=4, help="maximum examples per agent, half of them on average")
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    machine.console.print(f"Discovery's index on {machine.describe()}, {machine.load()}")
    run(benchmark(options))


if __name__ == "__main__":
    main()
