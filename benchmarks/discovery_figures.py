"""How well agents were found, in figures.

- **Top@1, Top@10**: the share of needs whose agent stands first, or among the first ten.
- **MR, MRR**: the mean of the rank, and of its reciprocal. A need whose agent is not among the first 100 counts as rank 101 and 0.
- **cover@6, cover@12**: the share of a task's agents that are among its first 6 or 12 candidates, all needs asked at once.
- **Teams** (paper, section 4.1, without a language model that picks): *regular*, one leader asks for all parts of the task at
  once and takes as many of the candidates as there are parts; *nested*, each part is given to a sub-team whose leader asks for
  this part alone and takes the first three, and the sub-teams together are the team. Precision is the share of the team that
  the task needs, recall the share of those it needs that are in the team.
"""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from benchmarks.discovery_sets import Case
from benchmarks.discovery_ways import Way
from ioa.protocol.agents.search import MAX_K
from ioa.protocol.ids import AgentId

SUB_TEAM = 3


@dataclass(frozen=True)
class Team:
    """How good the teams are on average."""

    precision: float
    recall: float


@dataclass(frozen=True)
class Figures:
    """What one way of finding achieves on one set."""

    top_1: float
    top_10: float
    mean_rank: float
    mrr: float
    cover_6: float
    cover_12: float
    regular: Team
    nested: Team


async def measure(way: Way, cases: Sequence[Case], asked: Callable[[], None]) -> Figures:
    """Ask everything of a set; `asked` is called after each task."""
    ranks: list[int | None] = []
    six: list[float] = []
    twelve: list[float] = []
    regular: list[Team] = []
    nested: list[Team] = []
    for case in cases:
        lists = [await way.rank(need) for need in case.needs]
        ranks += [rank_of(found, gold) for found, gold in zip(lists, case.need_gold, strict=True)]
        candidates = await way.candidates(case.needs)
        six.append(share(case.gold, candidates[:6]))
        twelve.append(share(case.gold, candidates[:12]))
        parts = max(len(case.needs), len(case.gold))
        regular.append(team(candidates[:parts], case.gold))
        nested.append(team({name for found in lists for name in found[:SUB_TEAM]}, case.gold))
        asked()
    return Figures(
        top_1=statistics.mean(rank == 1 for rank in ranks),
        top_10=statistics.mean(rank is not None and rank <= 10 for rank in ranks),
        mean_rank=statistics.mean(MAX_K + 1 if rank is None else rank for rank in ranks),
        mrr=statistics.mean(1 / rank if rank else 0.0 for rank in ranks),
        cover_6=statistics.mean(six),
        cover_12=statistics.mean(twelve),
        regular=mean_team(regular),
        nested=mean_team(nested),
    )


def rank_of(found: Sequence[AgentId], gold: Collection[AgentId]) -> int | None:
    """Return the first place, from 1, at which a right agent stands."""
    return next((place for place, name in enumerate(found, 1) if name in gold), None)


def share(wanted: Collection[AgentId], found: Collection[AgentId]) -> float:
    """Return the share of `wanted` that is in `found`."""
    return len(set(wanted) & set(found)) / len(wanted)


def team(members: Collection[AgentId], gold: Collection[AgentId]) -> Team:
    """Judge one team; an empty one has neither precision nor recall."""
    return Team(share(members, gold) if members else 0.0, share(gold, members))


def mean_team(teams: Sequence[Team]) -> Team:
    """Average over tasks."""
    return Team(statistics.mean(each.precision for each in teams), statistics.mean(each.recall for each in teams))


@dataclass(frozen=True)
class Latency:
    """What one need takes, its embedding included: milliseconds of time, and of CPU in this process and its children."""

    asked: int
    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float
    cpu_p95_ms: float


async def time_each(
    asked: Sequence[Callable[[], Awaitable[object]]], cpu: Callable[[], float], clock: Callable[[], float]
) -> Latency:
    """Run each call by itself and time it."""
    took: list[float] = []
    spent: list[float] = []
    for ask in asked:
        cpu_before, before = cpu(), clock()
        await ask()
        took.append((clock() - before) * 1_000)
        spent.append((cpu() - cpu_before) * 1_000)
    return Latency(len(took), quantile(took, 0.5), quantile(took, 0.95), quantile(spent, 0.5), quantile(spent, 0.95))


def quantile(values: Sequence[float], of: float) -> float:
    """Return the value below which a share of them lie."""
    return sorted(values)[min(int(len(values) * of), len(values) - 1)]
