"""Fusing scores of different scales."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioa.ports.agent_index import Candidate
from ioa.protocol.ids import AgentId, PoolId
from ioa_discovery.fusion import normalise, rank, without_ties

A, B, C = PoolId("a"), PoolId("b"), PoolId("c")


def fuse(signals: Sequence[Mapping[PoolId, float]], one_less: Collection[PoolId] = ()) -> list[tuple[PoolId, float]]:
    """Fuse raw scores."""
    return rank([normalise(scores) for scores in signals], one_less=one_less)


def test_scores_are_mapped_onto_their_distribution() -> None:
    """A signal's mean becomes one half and three standard deviations above it become one."""
    fused = dict(fuse([{A: 3.0, B: 2.0, C: 1.0}]))
    assert fused == pytest.approx({A: 0.5 + 1 / 6, B: 0.5, C: 0.5 - 1 / 6})


def test_the_score_is_the_mean_over_signals() -> None:
    """An agent that a signal could have found and did not gets nothing from it."""
    fused = dict(fuse([{A: 1.0}, {A: 7.0, B: 7.0}]))
    assert fused == pytest.approx({A: 0.5, B: 0.25})


def test_a_signal_that_cannot_find_an_agent_is_not_held_against_it() -> None:
    """An agent is judged by one signal less if one of them never can find it."""
    fused = dict(fuse([{A: 1.0, B: 1.0}, {A: 1.0}], one_less={B}))
    assert fused == pytest.approx({A: 0.5, B: 0.5})


def test_equal_scores_are_ordered_by_pool() -> None:
    """Two replicas of discovery give the same order, whatever order their engines answer in."""
    assert [pool for pool, _ in fuse([{B: 1.0, A: 1.0}])] == [A, B]


def test_full_list_loses_its_lowest_score() -> None:
    """The lowest score of a full list is removed; a list that is not full stays."""
    found = [Candidate(AgentId(name), PoolId(name), True, score) for name, score in (("a", 3.0), ("b", 1.0), ("c", 1.0))]
    assert [without_ties(found, limit=3), without_ties(found, limit=4)] == [found[:1], found]


def test_nothing_found_is_nothing_fused() -> None:
    """Signals without candidates fuse to an empty list."""
    assert fuse([{}, {}]) == []


@given(
    st.dictionaries(st.sampled_from([PoolId(letter) for letter in "abcdefgh"]), st.floats(-10, 10), min_size=1),
    st.floats(0.5, 100),
    st.floats(-100, 100),
)
def test_the_scale_of_a_signal_does_not_matter(scores: dict[PoolId, float], factor: float, shift: float) -> None:
    """Stretching and moving a signal's scores changes no fused score, so that cosines and word weights can be added."""
    rounded = {pool: round(score, 3) for pool, score in scores.items()}
    moved = {pool: score * factor + shift for pool, score in rounded.items()}
    if len(set(rounded.values())) == 1:  # all equal but for the rounding of the shift: undecided on both sides
        moved = dict.fromkeys(moved, shift)
    assert dict(fuse([moved])) == pytest.approx(dict(fuse([rounded])), abs=1e-6)
