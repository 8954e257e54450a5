"""Simulate what outcomes do to who is found: does a better agent rise and a worse one sink, and does who fits stay in front?

    python -m benchmarks.outcomes [--set FOLDER] [--agents N] [--tasks N] [--seed N]

Of some agents of a set, four rivals each are made: the same card with one example less in turn, so that they match a need nearly
alike, and with 95, 70, 60 and 20 % of tasks done, in random order. All the other agents of the set did every task they ever had.
Then tasks come in, put as the set's own needs; each goes to the first hit and is done with the odds of that rival. Everything but
the agents and their luck is real: cards, embedding, index, fusion and what discovery remembers. The same again without memory.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.discovery_sets import OWN, variants_of
from ioa.ports.embedder import Embedder
from ioa.protocol.agents.outcomes import REMEMBERED, Outcome
from ioa.protocol.agents.search import Need, Search
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.embedder import open_embedder
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.experience import Experience
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.searcher import Searcher

ODDS = (0.95, 0.7, 0.6, 0.2)
BEST, WORST = ODDS[0], ODDS[-1]
MATCHING = 0.05
"""How much less similar a first hit may be than the best rival before it counts as one that does not fit."""


@dataclass(frozen=True)
class Contest:
    """The rivals that stand in for one agent, with the odds of each, and the needs that are theirs."""

    odds: dict[PoolId, float]
    needs: tuple[str, ...]


@dataclass
class Course:
    """What became of the tasks, by when they came: the odds of whom they were given to, 0 for an agent that does not fit."""

    given: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    best_first: list[bool] = field(default_factory=list)
    worst_first: list[bool] = field(default_factory=list)


def rivals_of(card: AgentCard, chance: random.Random) -> dict[AgentCard, float]:
    """Make the rivals of one agent."""
    odds = chance.sample(ODDS, len(ODDS))
    cards: dict[AgentCard, float] = {}
    for number, share in enumerate(odds):
        name = f"{card.agent_id}-rival-{number}"[-60:].lstrip("-")
        examples = tuple(example for place, example in enumerate(card.examples) if place != number)
        cards[card.model_copy(update={"agent_id": AgentId(name), "pool": PoolId(name), "examples": examples})] = share
    return cards


async def first_hit(searcher: Searcher, text: str, contest: Contest) -> tuple[PoolId, bool]:
    """Return who is found first, and whether it fits: one of the rivals, or an agent about as similar as the best of them."""
    hits = (await searcher.search(Search(needs=(Need(text=text, k=10),)))).merged
    rivals = max((hit.similarity for hit in hits if hit.card.pool in contest.odds), default=1.0)
    return hits[0].card.pool, hits[0].card.pool in contest.odds or hits[0].similarity >= rivals - MATCHING


async def play(searcher: Searcher, experience: Experience, contest: Contest, tasks: int, chance: random.Random) -> Course:
    """Give out tasks one by one, a minute apart."""
    course, clock = Course(), NEW_YEAR
    for number in range(tasks):
        text = contest.needs[number % len(contest.needs)]
        pool, _fits = await first_hit(searcher, text, contest)
        odds = contest.odds.get(pool, 0.0)
        course.given[number].append(odds)
        clock += timedelta(minutes=1)
        done = chance.random() < odds
        experience.add(Outcome(pool=pool, need=text, done=done, at=clock))
    for text in contest.needs:
        pool, _fits = await first_hit(searcher, text, contest)
        course.best_first.append(contest.odds.get(pool) == BEST)
        course.worst_first.append(contest.odds.get(pool) == WORST)
    return course


def popular(experience: Experience, cards: Sequence[AgentCard], contests: Sequence[Contest]) -> None:
    """Have every agent that is no rival do all the tasks that are remembered, of the very kinds that come."""
    for card in cards:
        for number in range(REMEMBERED):
            need = contests[number % len(contests)].needs[0]
            experience.add(Outcome(pool=card.pool, need=need, done=True, at=NEW_YEAR))


async def simulate(
    cards: Sequence[AgentCard], needs: dict[AgentId, tuple[str, ...]], seed: int, tasks: int, embedder: Embedder
) -> Table:
    """Play all contests with and without memory, and put what became of them side by side."""
    chance = random.Random(seed)
    rivals = {card.agent_id: rivals_of(card, chance) for card in cards if card.agent_id in needs}
    others = [card for card in cards if card.agent_id not in rivals]
    contests = [Contest({card.pool: odds for card, odds in of.items()}, needs[agent_id]) for agent_id, of in rivals.items()]
    everybody = [*others, *(card for of in rivals.values() for card in of)]
    thirds = (range(10), range(10, 25), range(25, tasks))
    table = Table(
        "memory", *(f"best, tasks {one.start + 1} to {one.stop}" for one in thirds), "worst, all", "done", "best first", "misfits"
    )
    index = ExactIndex(embedder.dimension)
    await Indexer(index, embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in everybody})
    for remembers in (False, True):
        experience = Experience(ManualClock())
        searcher = Searcher(index, embedder, experience=experience if remembers else None)
        popular(experience, others, contests)
        misfits = [not (await first_hit(searcher, text, one))[1] for one in contests for text in one.needs]
        courses = [await play(searcher, experience, one, tasks, random.Random(seed)) for one in contests]
        shares = [percent([odds == BEST for one in courses for number in third for odds in one.given[number]]) for third in thirds]
        given = [odds for one in courses for of in one.given.values() for odds in of]
        table.add_row(
            "yes" if remembers else "no",
            *shares,
            percent([odds == WORST for odds in given]),
            f"{100 * statistics.mean(given):.0f} %",
            percent([first for one in courses for first in one.best_first]),
            percent(misfits),
        )
    return table


def percent(seen: Sequence[bool]) -> str:
    """Write a share in percent."""
    return f"{100 * statistics.mean(seen):.0f} %"


async def main() -> None:
    """Simulate, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=Path, default=OWN / "office")
    parser.add_argument("--agents", type=int, default=20, help="how many agents get rivals")
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    *_, variant = variants_of(options.set)
    needs: dict[AgentId, tuple[str, ...]] = defaultdict(tuple)
    for case in variant.cases:
        for need, gold in zip(case.needs, case.need_gold, strict=True):
            if len(gold) == 1:
                needs[next(iter(gold))] += (need.text,)
    chosen = dict(random.Random(options.seed).sample(sorted(needs.items()), min(options.agents, len(needs))))
    async with open_embedder() as embedder:
        table = await simulate(variant.cards, chosen, options.seed, options.tasks, embedder)
    Console(width=140).print(table)


if __name__ == "__main__":
    asyncio.run(main())
