"""Measure the index in a process of its own by the number of its agents: how fast it answers, what it finds, what it takes.

    python -m benchmarks.discovery_scale [--agents 10000 100000] [--examples 4] [--queries 200] [--folder FOLDER [--reuse]]

Synthetic agents (`discovery_synthetic`) are written through the index as discovery writes them; then the search tree is built,
while needs are asked one after the other. Times are those of `EdgeIndex.search` for one need, as the service waits for them: for
the nearest texts and examples once the need is embedded, and for words in common while it is; beside them stands the CPU time of
both in all processes, which a busy machine changes less. Recall is the
share of the ten nearest that are found, against comparing everything with everything. Memory is that of the index's processes:
what is theirs alone, and with the files that the system keeps in memory for them. With `--reuse` the index that an earlier run
left in the folder is asked, and nothing is filled or built.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.table import Table

from benchmarks import machine
from benchmarks.discovery_synthetic import DIMENSION, Town
from benchmarks.parts import run, temporary_folder
from ioa.errors import InvalidInputError
from ioa.ports.agent_index import NO_TERMS, Candidates, IndexQuery, Signal
from ioa.protocol.search import Filters
from ioa_discovery.index.edge_index import EdgeIndex, open_edge_index
from ioa_discovery.index.live_shard import GROW_BY_POINTS
from ioa_discovery.recall import BEST
from ioa_discovery.search.searcher import PREFETCH

_MODEL = "synthetic"
_BATCH = 500
_POLL_SECONDS = 0.5
_NEVER = 10**12


@dataclass(frozen=True)
class Making:
    """What filling an index and building its search tree took. Times of needs in milliseconds, memory in megabytes."""

    fill_s: float
    build_s: float
    build_peak_mb: int
    while_building_p50_ms: float
    while_building_p99_ms: float


@dataclass(frozen=True)
class Answering:
    """How an index answers. Times of needs in milliseconds, memory in megabytes."""

    points_in_tree: int
    p50_ms: float
    p99_ms: float
    least_ms: float
    words_p50_ms: float
    words_p99_ms: float
    cpu_ms: float
    text_recall: float
    examples_recall: float
    tagged_recall: float
    own_mb: int
    with_files_mb: int
    disk_mb: int
    reopen_s: float


async def make(town: Town, queries: int, folder: Path) -> Making:
    """Fill an index and build its search tree, while needs are asked."""
    needs = town.queries(queries, PREFETCH, Filters())
    started = time.perf_counter()
    points = 0
    async with open_edge_index(model_id=_MODEL, dimension=DIMENSION, folder=folder, grow_by=_NEVER) as index:
        for entries in town.entries(_BATCH):
            await index.put(entries)
            points += sum(1 + len(entry.examples) for entry in entries)
    filled = time.perf_counter()
    async with open_edge_index(model_id=_MODEL, dimension=DIMENSION, folder=folder) as index:
        peak, meanwhile = await _ask_until_built(index, needs) if points > GROW_BY_POINTS else (0, [0.0])
        built = time.perf_counter()
    return Making(
        fill_s=round(filled - started, 1),
        build_s=round(built - filled, 1),
        build_peak_mb=peak,
        while_building_p50_ms=_percentile(meanwhile, 0.5),
        while_building_p99_ms=_percentile(meanwhile, 0.99),
    )


async def measure(town: Town, queries: int, folder: Path) -> Answering:
    """Ask an index that stands.

    Raises:
        InvalidInputError: It does not, or not with these agents.
    """
    needs = town.queries(queries, PREFETCH, Filters())
    tagged = town.queries(queries // 4, PREFETCH, Filters(tags=("tag-3",)))
    started = time.perf_counter()
    async with open_edge_index(model_id=_MODEL, dimension=DIMENSION, folder=folder) as index:
        if await index.count() != town.agents:
            raise InvalidInputError(f"The index in {folder} is not of {town.agents:,} agents.", hint="Measure without --reuse.")
        await index.search(needs[:1])
        reopened = time.perf_counter() - started
        await _ask(index, needs)
        clock = machine.create_cpu_clock()
        before = clock()
        words, elapsed = await _ask(index, needs)
        spent = clock() - before
        own, with_files = _memory()
        text, examples = await _recall(index, needs)
        tagged_text, tagged_examples = await _recall(index, tagged)
        return Answering(
            points_in_tree=index.built_points,
            p50_ms=_percentile(elapsed, 0.5),
            p99_ms=_percentile(elapsed, 0.99),
            least_ms=round(min(elapsed), 2),
            words_p50_ms=_percentile(words, 0.5),
            words_p99_ms=_percentile(words, 0.99),
            cpu_ms=round(1_000 * spent / len(needs), 2),
            text_recall=round(text, 3),
            examples_recall=round(examples, 3),
            tagged_recall=round(min(tagged_text, tagged_examples), 3),
            own_mb=own,
            with_files_mb=with_files,
            disk_mb=_disk(folder),
            reopen_s=round(reopened, 2),
        )


async def _ask_until_built(index: EdgeIndex, needs: Sequence[IndexQuery]) -> tuple[int, list[float]]:
    """Ask at leisure while the tree is built; return the most memory that was in use, and how long each need took."""
    peak = 0
    elapsed: list[float] = []
    while not index.built_points:
        words, near = await _ask(index, needs[len(elapsed) % len(needs) :][:1])
        elapsed += map(sum, zip(words, near, strict=True))
        peak = max(peak, _memory()[0])
        await asyncio.sleep(_POLL_SECONDS)
    return peak, elapsed


async def _ask(index: EdgeIndex, needs: Sequence[IndexQuery]) -> tuple[list[float], list[float]]:
    """Ask as the searcher does; return how long each need took by words, and by all else."""
    elapsed: tuple[list[float], list[float]] = ([], [])
    for need in needs:
        for asked, times in zip((replace(need, dense=None), replace(need, terms=NO_TERMS)), elapsed, strict=True):
            started = time.perf_counter()
            await index.search([asked])
            times.append(1_000 * (time.perf_counter() - started))
    return elapsed


async def _recall(index: EdgeIndex, needs: Sequence[IndexQuery]) -> tuple[float, float]:
    """Return the mean recall by text and by examples."""
    texts, examples = [], []
    for need in needs:
        [found], [right] = await index.search([need]), await index.search([need], exact=True)
        texts.append(_share(found, right, Signal.TEXT))
        examples.append(_share(found, right, Signal.EXAMPLES))
    return statistics.mean(texts), statistics.mean(examples)


def _share(found: Candidates, right: Candidates, signal: Signal) -> float:
    nearest = {candidate.agent_id for candidate in right[signal][:BEST]}
    return len(nearest & {candidate.agent_id for candidate in found[signal][:BEST]}) / max(1, len(nearest))


def _percentile(elapsed: Sequence[float], share: float) -> float:
    return round(sorted(elapsed)[min(len(elapsed) - 1, int(share * len(elapsed)))], 2)


def _disk(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file()) // 1_000_000


def _memory() -> tuple[int, int]:
    """Return the megabytes of this process's children: their own, and with what of files is mapped."""
    own = whole = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = dict(line.split(":", 1) for line in _status(child))
            own += int(fields.get("RssAnon", "0").split()[0]) // 1_000
            whole += int(fields.get("VmRSS", "0").split()[0]) // 1_000
    return own, whole


def _status(pid: str) -> list[str]:
    try:
        return Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return []


@contextmanager
def _folder(parent: Path | None, agents: int) -> Iterator[Path]:
    if parent is None:
        with temporary_folder() as folder:
            yield folder
    else:
        yield parent / f"{agents}-agents"


async def benchmark(options: argparse.Namespace) -> None:
    """Measure each size and print a table."""
    measured = []
    for agents in options.agents:
        town = Town(agents, options.examples)
        with _folder(options.folder, agents) as folder:
            made = {} if options.reuse else asdict(await make(town, options.queries, folder))
            measured.append({"agents": agents} | made | asdict(await measure(town, options.queries, folder)))
        machine.console.print(json.dumps(measured[-1]))
    table = Table("", *(f"{row['agents']:,}" for row in measured))
    for name in list(measured[0])[1:]:
        table.add_row(name.replace("_", " "), *(f"{row[name]:,}" for row in measured))
    machine.console.print(table)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--examples", type=int, default=4, help="examples of an agent at the most, half of them on average")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keep the indexes here; default: a temporary folder")
    parser.add_argument("--reuse", action="store_true", help="ask the indexes that an earlier run left in the folder")
    options = parser.parse_args()
    if options.reuse and options.folder is None:
        parser.error("--reuse needs the --folder that an earlier run left its indexes in")
    machine.console.print(f"Discovery's index on {machine.describe()}, {machine.load()}")
    run(benchmark(options))


if __name__ == "__main__":
    main()
