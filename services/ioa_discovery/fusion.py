"""Distribution-based score fusion (DBSF): combines scores of different scales.

The scores of a signal are mapped so that its mean minus three standard deviations is 0 and its mean plus three is 1. The fused
score is the mean over the signals that can find a card; such a signal that did not find it counts as 0.

This is Qdrant's formula with two differences. Pools are counted, not replicas, so that scaling a pool up changes no score. A card
without examples is judged by the other signals: with the examples removed from half of the cards of a set, Top@1 is 53 % instead
of 41 %.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import sqrt

from ioa.ports.agent_index import Candidate
from ioa.protocol.ids import PoolId

_SPREAD = 3.0
_UNDECIDED = 0.5


def without_ties(candidates: Sequence[Candidate], limit: int) -> Sequence[Candidate]:
    """Remove the candidates with the lowest score from a full list: which of several equal ones it contains is arbitrary.

    With them, two replicas of discovery with the same cards would return different scores.
    """
    if len(candidates) < limit:
        return candidates
    return candidates[: bisect_left(candidates, -candidates[-1].score, key=_negated_score)]


def _negated_score(candidate: Candidate) -> float:
    return -candidate.score


def rank(signals: Sequence[Mapping[PoolId, float]], *, one_less: Collection[PoolId] = ()) -> list[tuple[PoolId, float]]:
    """Return the pools by fused score, best first; equal scores by pool, so that replicas of discovery agree.

    Args:
        signals: The normalised scores of each signal.
        one_less: Pools that one of the signals can never find.
    """
    fused = defaultdict[PoolId, float](float)
    for scores in signals:
        for pool, score in scores.items():
            fused[pool] += score
    count = len(signals)
    best_first = sorted((-total / (count - (pool in one_less)), pool) for pool, total in fused.items())
    return [(pool, -negated) for negated, pool in best_first]


def normalise(scores: Mapping[PoolId, float]) -> dict[PoolId, float]:
    """Map scores onto their distribution. Equal scores distinguish nothing and become 0.5."""
    values = scores.values()
    if len(set(values)) < 2:  # rounding can give equal scores a tiny deviation
        return dict.fromkeys(scores, _UNDECIDED)
    mean = sum(values) / len(values)
    deviation = sqrt(sum([(score - mean) ** 2 for score in values]) / (len(values) - 1))
    low, width = mean - _SPREAD * deviation, 2 * _SPREAD * deviation
    return {pool: (score - low) / width for pool, score in scores.items()}
