"""The evaluation's figures are what they say, and the sets that come with the project are whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.discovery_figures import Figures, Team, measure, time_each
from benchmarks.discovery_sets import OWN, Case, sets_in, variants_of
from benchmarks.discovery_ways import Original
from ioa.protocol.ids import AgentId
from ioa.protocol.search import Need
from ioa_testkit.word_engines import HashingEmbedder

A, B, C, D = (AgentId(name) for name in "abcd")


class FixedWay:
    """Finds for each need what it was told to, and merges nothing: the candidates are told, too."""

    name = "fixed"

    def __init__(self, ranks: dict[str, Sequence[AgentId]], candidates: Sequence[AgentId]) -> None:
        self._ranks = ranks
        self._candidates = candidates

    async def rank(self, need: Need) -> Sequence[AgentId]:
        """Look up what to find."""
        return self._ranks[need.text]

    async def candidates(self, needs: Sequence[Need]) -> Sequence[AgentId]:
        """Give the list."""
        return self._candidates[: 12 * len(needs)]


async def test_every_figure_of_a_task_worked_by_hand() -> None:
    """Of two needs one is answered at the second place and one not at all; the figures follow by arithmetic."""
    case = Case(Need(text="both"), (Need(text="first"), Need(text="second")), (frozenset({A}), frozenset({B})), frozenset({A, B}))
    way = FixedWay({"first": [C, A, D], "second": [C]}, [A, C, *[D] * 5, B])
    asked: list[bool] = []
    found = await measure(way, [case], partial(asked.append, True))
    expected = Figures(
        top_1=0.0,
        top_10=0.5,
        mean_rank=(2 + 101) / 2,
        mrr=0.25,
        cover_6=0.5,
        cover_12=1.0,
        regular=Team(precision=0.5, recall=0.5),
        nested=Team(precision=1 / 3, recall=0.5),
    )
    assert (found, asked) == (expected, [True])


async def test_the_original_takes_three_descriptions_for_each_characteristic() -> None:
    """Its list is that of the first characteristic, then what the second adds, each agent once; names are not looked at."""
    texts = ["red apple", "red pear", "red sea", "blue sea", "blue sky", "green tree"]
    embedder = HashingEmbedder(dimension=512)
    agents = [AgentId(f"agent-{number}") for number in range(len(texts))]
    vectors = np.array(await embedder.embed(texts))
    way = Original(embedder, agents, vectors, by_keywords=True)
    found = await way.rank(Need(text="ignored", keywords=("red apple", "blue sea")))
    assert found == agents[:5]


async def test_times_are_those_of_each_call() -> None:
    """A call's time is what the clock moved while it ran, in milliseconds."""
    now = 0.0

    async def takes(seconds: float) -> None:
        nonlocal now
        now += seconds

    timed = await time_each([partial(takes, 0.002), partial(takes, 0.004)], lambda: now / 2, lambda: now)
    assert (timed.asked, round(timed.p95_ms, 9), round(timed.cpu_p95_ms, 9)) == (2, 4.0, 2.0)


@pytest.mark.parametrize("folder", sets_in(OWN), ids=lambda folder: folder.name)
def test_the_project_s_own_sets_are_whole(folder: Path) -> None:
    """Every need has an agent that exists, every agent is needed once at least, and some cards have examples."""
    whole = {variant.cards_are: variant for variant in variants_of(folder)}["examples"]
    needed = {name for case in whole.cases for name in case.gold}
    assert needed == {card.agent_id for card in whole.cards}
    assert (whole.needs > len(whole.cases) > 0, any(card.examples for card in whole.cards)) == (True, True)
