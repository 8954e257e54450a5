"""The evaluation's figures are what they say, and the sets that come with the project are whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from benchmarks.discovery_figures import Figures, Team, measure
from benchmarks.discovery_sets import OWN, Case, sets_in, variants_of
from ioa.protocol.agents.search import Need
from ioa.protocol.ids import AgentId

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


@pytest.mark.parametrize("folder", sets_in(OWN), ids=lambda folder: folder.name)
def test_the_project_s_own_sets_are_whole(folder: Path) -> None:
    """Every need has an agent that exists, every agent is needed once at least, and some cards have examples."""
    whole = {variant.cards_are: variant for variant in variants_of(folder)}["examples"]
    needed = {name for case in whole.cases for name in case.gold}
    assert needed == {card.agent_id for card in whole.cards}
    assert (whole.needs > len(whole.cases) > 0, any(card.examples for card in whole.cards)) == (True, True)
