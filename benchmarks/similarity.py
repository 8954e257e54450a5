"""Measure which similarity tells needs that the example agents serve from needs that nobody serves.

    python benchmarks/similarity.py [MODULE.py]... [--list]

Without modules, all of `examples/agents/` are indexed. The needs below are of three kinds: those that an agent serves, those
that none serves but that are far from all, and those that none serves although they speak of the same things. The table says
for each threshold how many of each kind are called served.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ioa.agent.definition import AgentDefinition
from ioa.protocol.agents.search import Hit, Need, Search
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa_discovery.embedder import open_embedder
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.searcher import Searcher

AGENTS = Path(__file__).parent.parent / "examples" / "agents"
SERVED = {
    "csv-analyst": (
        "sum of sales by region",
        "mean of price by category in products.csv",
        "count of rows by month where status is open",
        "max of salary by department",
        "min of Temperatur by Stadt",
        "sum of ventes by ville where année is 2024",
        "count of rows by flavour",
    ),
    "chart-maker": ("bar chart of #1", "line chart of #2", "bar chart of #4", "line chart of #12", "Bar chart of #1"),
    "text-analyst": (
        "count of words in minutes.txt",
        "count of lines in article.md",
        "count of characters in interview.txt",
        "count of words in protokoll.txt",
        "count of lines in letter",
    ),
    "calculator": ("15 / 100 * 240", "12 * (3 + 4)", "#2 * 1.19", "2 ** 10", "1 + 1"),
    "report-writer": ("report of #1 and #2", "report of #1", "report of #2, #3 and #4", "report of #12 and #3"),
    "python-runner": ("run primes.py", "run clean_data.py", "run\n```python\nprint(2**10)\n```"),
}
FAR = (
    "book a flight to Rome",
    "bake a cake",
    "translate the letter to French",
    "order a pizza",
    "sing a lullaby",
    "repair my bicycle",
    "diagnose my headache",
    "play chess against me",
    "recommend a film for tonight",
    "water the plants",
    "negotiate my salary",
    "send an email to Bob",
    "schedule a meeting for Tuesday",
    "paint a portrait of a cat",
    "teach me to swim",
    "transcribe this audio recording",
    "what is the weather in Paris tomorrow",
    "find a hotel near the beach",
)
NEAR = (
    "train a neural network on sales.csv",
    "record a podcast about the sales",
    "translate the report into German",
    "print the report on paper",
    "predict the stock price of next month",
    "make a video of the chart",
    "deploy the web page to production",
    "call the customer who spent the most",
    "proofread the letter by a lawyer",
    "buy the most sold product",
)


def cards_of(files: Iterable[Path]) -> list[AgentCard]:
    """Read the card of each file that makes an agent."""
    agents: dict[str, AgentDefinition] = {}
    for file in files:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        agents.update({agent.agent_id: agent for agent in vars(module).values() if isinstance(agent, AgentDefinition)})
    return [agent.card_as(AgentId(name)) for name, agent in agents.items()]


async def best_hits(cards: list[AgentCard], needs: Iterable[str]) -> list[tuple[str, Hit]]:
    """Return each need's best hit by score."""
    async with open_embedder() as embedder:
        index = ExactIndex(embedder.dimension)
        await Indexer(index, embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in cards})
        searcher = Searcher(index, embedder)
        return [(need, (await searcher.search(Search(needs=(Need(text=need),)))).merged[0]) for need in needs]


async def main() -> None:
    """Print the distribution, and with `--list` every need."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", type=Path)
    parser.add_argument("--list", action="store_true", help="print every need with its best hit")
    options = parser.parse_args()
    sys.path.insert(0, str(AGENTS))
    cards = cards_of(options.modules or sorted(AGENTS.glob("*.py")))
    here = {card.agent_id for card in cards}
    served = {need: agent for agent, needs in SERVED.items() for need in needs if agent in here}
    kinds = {"served": tuple(served), "far": FAR, "near": NEAR}
    console = Console(width=140)
    found = {kind: await best_hits(cards, needs) for kind, needs in kinds.items()}
    right = [hit.card.agent_id == served[need] for need, hit in found["served"]]
    console.print(f"{len(cards)} agents; right agent first: {sum(right)} of {len(right)} served needs")
    if options.list:
        for kind, hits in found.items():
            for need, hit in sorted(hits, key=lambda item: item[1].similarity):
                console.print(
                    f"{kind:7} {hit.similarity:.2f} {hit.card.agent_id:14} {need}  ~  {hit.matched_example}", highlight=False
                )
    table = Table("threshold", *(f"{kind} (of {len(hits)})" for kind, hits in found.items()))
    for percent in range(20, 65, 5):
        counts = [str(sum(hit.similarity >= percent / 100 for _, hit in hits)) for hits in found.values()]
        table.add_row(f"{percent / 100:.2f}", *counts)
    console.print(table)


if __name__ == "__main__":
    asyncio.run(main())
