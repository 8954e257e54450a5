"""Agents whose vectors are drawn, as many as are wanted, spread about as those of real cards are.

Real cards by the default model (1,498 profiles and their examples): any two have a cosine of 0.15 at the median and 0.35 at the
95th percentile, the nearest one 0.6; two examples of one agent 0.39, of two agents 0.12; half the variance lies in 40 directions.
These are: 0.16, 0.31, 0.7, 0.4, 0.16 and 25. Real ones are spread more, so that search trees have it no easier here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ioa.ports.agent_index import IndexEntry, IndexQuery, SparseVector
from ioa.protocol.agents.search import Filters
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId

DIMENSION = 384
_CLUSTER_AGENTS = 20
_MIN_CLUSTERS = 50
_OWN = 0.5
_OF_AGENT = 0.3
_MEAN = 0.4
_DECAY = 0.75
_FLAT_DIRECTIONS = 20
_VOCABULARY = 30_000
_ZIPF = 1.15
_CARD_WORDS, _NEED_WORDS = 40, 8
_POOL_AGENTS = 3
_ONLINE = 0.9
_SPACE_SEED, _NEED_SEED = 0, 1
_DESCRIPTION = "Does what is asked of it, and says so at some length, as the cards of real agents do. " * 5


@dataclass(frozen=True)
class Town:
    """So many agents, so many examples each at the most and half of that on average; the same for the same seed."""

    agents: int
    most_examples: int
    seed: int = 7

    def entries(self, batch: int) -> Iterator[list[IndexEntry]]:
        """Yield all agents, a batch at a time."""
        space = _Space(self.agents)
        chance = np.random.default_rng(self.seed)
        for start in range(0, self.agents, batch):
            yield self._batch(space, chance, range(start, min(start + batch, self.agents)))

    def queries(self, count: int, limit: int, filters: Filters) -> list[IndexQuery]:
        """Draw needs, as near to agents as agents are to each other."""
        space = _Space(self.agents)
        chance = np.random.default_rng((self.seed, _NEED_SEED))
        vectors = space.vectors(space.meanings(chance, count))
        return [IndexQuery(row.tolist(), _terms(chance, _NEED_WORDS), filters, (), limit) for row in vectors]

    def _batch(self, space: _Space, chance: np.random.Generator, numbers: range) -> list[IndexEntry]:
        meanings = space.meanings(chance, len(numbers))
        counts = chance.integers(0, self.most_examples + 1, size=len(numbers))
        owners = np.repeat(np.arange(len(numbers)), counts)
        drawn = space.meanings(chance, len(owners))
        examples = iter(space.vectors(_OF_AGENT**0.5 * meanings[owners] + (1 - _OF_AGENT) ** 0.5 * drawn).tolist())
        return [
            IndexEntry(
                card=_card(number, int(count)),
                online=bool(chance.random() < _ONLINE),
                text=text,
                examples=tuple(next(examples) for _ in range(count)),
                terms=_terms(chance, _CARD_WORDS),
                fingerprint=f"{number:032x}",
            )
            for number, text, count in zip(numbers, space.vectors(meanings).tolist(), counts, strict=True)
        ]


class _Space:
    """Where meanings lie: in clusters, with most of the variance in few directions."""

    def __init__(self, agents: int) -> None:
        chance = np.random.default_rng(_SPACE_SEED)
        self._scale = (np.arange(DIMENSION) + _FLAT_DIRECTIONS) ** -_DECAY
        self._turn, _ = np.linalg.qr(chance.normal(size=(DIMENSION, DIMENSION)))
        mean = chance.normal(size=DIMENSION)
        self._mean = _MEAN * mean / np.linalg.norm(mean)
        clusters = max(_MIN_CLUSTERS, agents // _CLUSTER_AGENTS)
        self._centres = chance.normal(size=(clusters, DIMENSION)).astype(np.float32)

    def meanings(self, chance: np.random.Generator, count: int) -> np.ndarray:
        """Draw meanings, each partly its cluster's and partly its own."""
        of_cluster = self._centres[chance.integers(len(self._centres), size=count)]
        drawn: np.ndarray = (1 - _OWN) ** 0.5 * of_cluster + _OWN**0.5 * chance.normal(size=(count, DIMENSION))
        return drawn

    def vectors(self, meanings: np.ndarray) -> np.ndarray:
        """Return the unit vectors of meanings."""
        scaled = meanings * self._scale
        scaled /= np.linalg.norm(scaled, axis=1, keepdims=True)
        turned = scaled @ self._turn.T * (1 - _MEAN**2) ** 0.5 + self._mean
        unit: np.ndarray = (turned / np.linalg.norm(turned, axis=1, keepdims=True)).astype(np.float32)
        return unit


def _card(number: int, examples: int) -> AgentCard:
    return AgentCard(
        agent_id=AgentId(f"agent-{number}"),
        name=f"Agent {number}",
        description=_DESCRIPTION,
        examples=tuple(f"Please do what example {place} of agent {number} says." for place in range(examples)),
        tags=(f"tag-{number % 10}",),
        pool=PoolId(f"pool-{number // _POOL_AGENTS}"),
    )


def _terms(chance: np.random.Generator, words: int) -> SparseVector:
    drawn = np.unique(np.minimum(chance.zipf(_ZIPF, size=words), _VOCABULARY)).tolist()
    return SparseVector(tuple(drawn), (1.0,) * len(drawn))
