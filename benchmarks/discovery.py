"""Measure how well and how fast discovery finds the right agents.

    python -m benchmarks.discovery [DATA] [--set NAME]... [--json]

DATA holds sets, or is one; without it, the sets that come with the project are measured. Every set is measured with the
service's defaults, once with names and descriptions alone and once with all that the cards say.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks import discovery_figures, machine
from benchmarks.discovery_figures import Figures, Latency
from benchmarks.discovery_sets import OWN, Variant, sets_in, variants_of
from benchmarks.discovery_ways import bare, create_ways
from ioa.errors import InvalidInputError
from ioa.ports.agent_index import AgentIndex
from ioa.ports.embedder import Embedder
from ioa.protocol.agents.search import Need, Search
from ioa.protocol.ids import PoolId
from ioa_discovery.embedding_model import open_embedder
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.searcher import Searcher
from ioa_groups.leaders import ASKED, best_leader

LATENCY_K = 10


@dataclass(frozen=True)
class Report:
    """All figures of one set with its cards written in one way."""

    set_name: str
    cards_are: str
    agents: int
    needs: int
    index_seconds: float
    found: Mapping[str, Figures]
    led: float
    latency: Latency


async def evaluate(variant: Variant, embedder: Embedder, progress: Progress) -> Report:
    """Index the cards, time every need once, and compare all ways of finding."""
    label = f"{variant.set_name}, {variant.cards_are}"
    index = ExactIndex(embedder.dimension)
    with _step(progress, f"{label}: indexing {len(variant.cards)} cards", None):
        started = time.perf_counter()
        await Indexer(index, embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in variant.cards})
        index_seconds = time.perf_counter() - started
    with _step(progress, f"{label}: timing needs", None):
        latency = await time_needs(variant, index)
    with _step(progress, f"{label}: who leads", len(variant.cases)) as advance:
        led = await share_led_by_one_that_fits(variant, Searcher(index, embedder), advance)
    ways = await create_ways(variant.cards, index, embedder, with_keywords=variant.has_keywords)
    found: dict[str, Figures] = {}
    for name, way in ways.items():
        with _step(progress, f"{label}: {name}", len(variant.cases)) as advance:
            found[name] = await discovery_figures.measure(way, variant.cases, advance)
    return Report(variant.set_name, variant.cards_are, len(variant.cards), variant.needs, index_seconds, found, led, latency)


async def share_led_by_one_that_fits(variant: Variant, searcher: Searcher, advance: Callable[[], None]) -> float:
    """Ask for the whole text of each task, as intake does, and see how often who is to lead is one of those that it takes."""
    right = 0
    for case in variant.cases:
        found = await searcher.search(Search(needs=(case.task.model_copy(update={"k": ASKED}),)))
        right += best_leader(found.by_need[0].hits) in {PoolId(agent_id) for agent_id in case.gold}
        advance()
    return right / len(variant.cases)


async def time_needs(variant: Variant, index: AgentIndex) -> Latency:
    """Time every need of a set by itself, with an embedder that has not seen it before."""
    texts = {need.text: bare(need) for case in variant.cases for need in case.needs}
    requests = [Search(needs=(need.model_copy(update={"k": LATENCY_K}),)) for need in texts.values()]
    async with open_embedder(cache_vectors=1) as embedder:
        searcher = Searcher(index, embedder)
        await searcher.search(Search(needs=(Need(text="Somebody who makes the model warm."),)))
        asked = [partial(searcher.search, request) for request in requests]
        return await discovery_figures.time_each(asked, machine.create_cpu_clock(), time.perf_counter)


@contextmanager
def _step(progress: Progress, text: str, total: int | None) -> Iterator[partial[None]]:
    """Show a step on standard error while it runs; where that is no terminal, only its name."""
    if not progress.console.is_terminal:
        progress.console.print(text)
    task = progress.add_task(text, total=total)
    try:
        yield partial(progress.advance, task)
    finally:
        progress.remove_task(task)


def quality_table(report: Report) -> Table:
    """Compare the ways of finding on one set."""
    table = Table(
        "found by",
        "Top@1",
        "Top@10",
        "MR",
        "MRR",
        "cover@6",
        "cover@12",
        "regular P",
        "regular R",
        "nested P",
        "nested R",
        title=f"{report.set_name}, cards with {report.cards_are}: {report.agents} agents, {report.needs} needs",
        title_justify="left",
    )
    for name, figures in report.found.items():
        table.add_row(
            name,
            _percent(figures.top_1),
            _percent(figures.top_10),
            f"{figures.mean_rank:.1f}",
            *map(_percent, (figures.mrr, figures.cover_6, figures.cover_12)),
            *map(_percent, (figures.regular.precision, figures.regular.recall, figures.nested.precision, figures.nested.recall)),
        )
    return table


def latency_table(reports: list[Report]) -> Table:
    """Show what one need takes on each set."""
    table = Table(
        "set",
        "cards with",
        "agents",
        "needs",
        "led by one that fits",
        "p50 ms",
        "p95 ms",
        "CPU p50",
        "CPU p95",
        "indexing s",
        title=f"One need, {LATENCY_K} hits, its embedding included (aim with 1,500 agents: 3 and 10 ms)",
        title_justify="left",
    )
    for report in reports:
        timed = report.latency
        times = (timed.p50_ms, timed.p95_ms, timed.cpu_p50_ms, timed.cpu_p95_ms, report.index_seconds)
        counts = (str(report.agents), str(timed.asked), _percent(report.led))
        table.add_row(report.set_name, report.cards_are, *counts, *(f"{value:.1f}" for value in times))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


async def benchmark(data: Path, chosen: list[str] | None, *, as_json: bool) -> None:
    """Measure the sets and print what was found.

    Raises:
        InvalidInputError: There is no such set.
    """
    folders = [folder for folder in sets_in(data) if chosen is None or folder.name in chosen]
    if not folders:
        raise InvalidInputError(
            f"There is no set of agents in {data}.", hint="Name a folder whose folders hold an agents.jsonl and a queries.jsonl."
        )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    reports: list[Report] = []
    async with open_embedder() as embedder:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            for folder in folders:
                reports += [await evaluate(variant, embedder, progress) for variant in variants_of(folder)]
    if as_json:
        sys.stdout.write(
            json.dumps({"machine": machine.describe(), "sets": [asdict(report) for report in reports]}, indent=1) + "\n"
        )
        return
    for report in reports:
        machine.console.print(quality_table(report))
    machine.console.print(latency_table(reports))
    machine.console.print(f"On {machine.describe()}. The same settings for every set; what the columns mean: docs/discovery.md.")


def main() -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=OWN, help="a folder of sets, or a set; default: those of the project")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME", help="a folder of DATA; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    options = parser.parse_args()
    try:
        asyncio.run(benchmark(options.data, options.sets, as_json=options.json))
    except InvalidInputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
