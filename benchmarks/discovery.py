"""Measure how well and how fast discovery finds the right agents.

    python benchmarks/discovery.py DATA [--set NAME]...

`DATA` holds folders with an `agents.jsonl` (`id`, `name`, `description`, perhaps `tags`, `summary`, `examples`) and a
`queries.jsonl` (`text`, `gold`, perhaps `needs` and `need_gold`). Every set is measured with the service's defaults.

Top@1, Top@10 and MRR: one need, one agent. Where a set has no needs, each query stands for its first gold agent that is found.
Coverage@6: the share of a task's agents that are among the first six of the merged list, over the task's needs, put in three ways.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa.protocol.search import MAX_NEED_CHARS, Hit, Need, Search
from ioa_discovery.edge_index import open_edge_index
from ioa_discovery.embedding import open_embedder
from ioa_discovery.indexer import Indexer
from ioa_discovery.onnx_encoder import OnnxEncoder
from ioa_discovery.searcher import Searcher

CANDIDATES = 6
K = 100
WAYS: dict[str, Callable[[Need], Need]] = {
    f"cover@{CANDIDATES}": lambda need: need.model_copy(update={"keywords": ()}),
    "+ keywords": lambda need: need,
    "keywords": lambda need: Need(text=", ".join(need.keywords) or need.text, k=need.k),
}
"""How a need may be put: its text, its text with keywords, its keywords alone."""


@dataclass(frozen=True)
class Case:
    """A task: the needs it splits into, the agent that each is for, and all agents it needs."""

    needs: tuple[Need, ...]
    need_gold: tuple[frozenset[str], ...]
    gold: frozenset[str]


def card_of(row: dict[str, Any], *, full: bool) -> AgentCard:
    """Make a card of a profile: with its summary and examples, or with its name and description alone."""
    description = row.get("description") or row["name"]
    if full and row.get("summary"):
        description = f"{description}\n{row['summary']}"
    return AgentCard(
        agent_id=agent_id(row["id"]),
        name=row["name"][:200],
        description=description[:4_000],
        examples=tuple(example[:4_000] for example in row.get("examples", ()) if example) if full else (),
        pool=agent_id(row["id"]),
    )


def agent_id(name: str) -> AgentId:
    """Make a valid id of any name."""
    return AgentId(hashlib.sha256(name.encode()).hexdigest()[:16])


def read(file: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]


def cases_of(rows: Iterable[dict[str, Any]], here: set[str]) -> Iterator[Case]:
    """Keep the needs whose agents are among those indexed."""
    for row in rows:
        if "needs" in row:
            keywords = row.get("keywords") or [()] * len(row["needs"])
            pairs = [
                (need_of(text, words), agent_id(gold))
                for text, words, gold in zip(row["needs"], keywords, row["need_gold"], strict=True)
                if agent_id(gold) in here
            ]
            if pairs:
                yield Case(
                    needs=tuple(need for need, _ in pairs),
                    need_gold=tuple(frozenset({name}) for _, name in pairs),
                    gold=frozenset(name for _, name in pairs),
                )
        else:
            gold = frozenset(agent_id(name) for name in row["gold"]) & here
            if gold:
                yield Case((need_of(row["text"], ()),), (gold,), gold)


def need_of(text: str, keywords: Iterable[str]) -> Need:
    """Make a need of a part of a task."""
    return Need(text=text[:MAX_NEED_CHARS], keywords=tuple(word for word in keywords if word), k=CANDIDATES)


def rank_of(hits: Sequence[Hit], gold: frozenset[str]) -> int | None:
    """Return the first place, from 1, at which a right agent stands."""
    return next((place for place, hit in enumerate(hits, 1) if hit.card.agent_id in gold), None)


async def measure(cards: Sequence[AgentCard], cases: Sequence[Case], searcher: Searcher, indexer: Indexer) -> list[str]:
    """Index the cards, ask every case and return a row of figures."""
    started = time.perf_counter()
    await indexer.rebuild(cards, [card.agent_id for card in cards])
    indexing = time.perf_counter() - started
    ranks: list[int | None] = []
    elapsed: list[float] = []
    coverage: dict[str, list[float]] = {way: [] for way in WAYS}
    for case in cases:
        for need, gold in zip(case.needs, case.need_gold, strict=True):
            text = need.model_copy(update={"keywords": (), "k": 10})
            started = time.perf_counter()
            await searcher.search(Search(needs=(text,)))
            elapsed.append(time.perf_counter() - started)
            result = await searcher.search(Search(needs=(text.model_copy(update={"k": K}),)))
            ranks.append(rank_of(result.by_need[0].hits, gold))
        for way, phrase in WAYS.items():
            together = Search(needs=tuple(phrase(need) for need in case.needs))
            merged = {hit.card.agent_id for hit in (await searcher.search(together)).merged[:CANDIDATES]}
            coverage[way].append(len(merged & case.gold) / len(case.gold))
    milliseconds = sorted(seconds * 1_000 for seconds in elapsed)
    return [
        str(len(cards)),
        str(len(ranks)),
        percent(statistics.mean(rank == 1 for rank in ranks)),
        percent(statistics.mean(rank is not None and rank <= 10 for rank in ranks)),
        percent(statistics.mean(1 / rank if rank else 0.0 for rank in ranks)),
        *(percent(statistics.mean(shares)) for shares in coverage.values()),
        f"{milliseconds[len(milliseconds) // 2]:.1f}",
        f"{milliseconds[int(len(milliseconds) * 0.95)]:.1f}",
        f"{indexing:.1f}",
    ]


def percent(share: float) -> str:
    """Write a share in percent."""
    return f"{100 * share:.1f}"


async def main() -> None:
    """Measure every set that was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--set", action="append", dest="sets", help="a folder of DATA; may be repeated; default: all")
    options = parser.parse_args()
    table = Table("set", "cards", "agents", "needs", "Top@1", "Top@10", "MRR", *WAYS, "p50 ms", "p95 ms", "index s")
    folders = options.sets or sorted(folder.name for folder in options.data.iterdir() if (folder / "agents.jsonl").is_file())
    async with open_embedder(OnnxEncoder.of_package) as embedder:
        for name in folders:
            rows = read(options.data / name / "agents.jsonl")
            queries = read(options.data / name / "queries.jsonl")
            described = [row for row in rows if row.get("examples")]
            variants = [("names", rows, False)]
            if described:
                variants += [
                    ("full, all", rows, True),
                    ("full, described", described, True),
                    ("names, described", described, False),
                ]
            for variant, chosen, full in variants:
                cards = [card_of(row, full=full) for row in chosen]
                cases = list(cases_of(queries, {card.agent_id for card in cards}))
                async with open_edge_index(model_id=embedder.model_id, dimension=embedder.dimension) as index:
                    figures = await measure(cards, cases, Searcher(index, embedder), Indexer(index, embedder))
                table.add_row(name, variant, *figures)
    Console(width=140).print(table)


if __name__ == "__main__":
    asyncio.run(main())
