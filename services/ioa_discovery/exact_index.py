"""Exact vector index in memory: compares every agent with every need, with numpy.

It serves systems of up to about 20,000 agents. Its content is derived from the registry, so nothing is stored.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Any

import structlog

from ioa.errors import MissingExtraError
from ioa.ports.agent_index import Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Likeness, Signal, SparseVector
from ioa.ports.embedder import Vector
from ioa.protocol.agents.search import Filters
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId

try:
    import numpy as np
except ImportError as error:
    raise MissingExtraError.of("The exact index", "discovery") from error

MAX_AGENTS = 20_000
"""Agents up to which searches are fast. With more, searches stay exact and take longer, and a warning names Qdrant."""
_FIRST_ROWS = 64
_NONE = -1
"""Owner of an unused row, and pool of an unused slot."""

_log = structlog.get_logger(__name__)


class ExactIndex:
    """An `AgentIndex` over numpy arrays.

    Each agent has a slot: a row of the matrix of texts, and an item of the arrays `_online` and `_pool_of`. Each pool has a number.
    Each term has the slots of the agents whose cards contain it, and its weight in each.
    A search runs on the event loop: 0.3 ms with 1,500 agents, 3 ms with 20,000, less than a change of threads and back costs small
    systems.
    """

    def __init__(self, dimension: int) -> None:
        self._slots: dict[AgentId, int] = {}
        self._agents: dict[int, _Agent] = {}
        self._texts = _Rows(dimension)
        self._examples = _Rows(dimension)
        self._online = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self._pool_of = np.full(_FIRST_ROWS, _NONE, dtype=np.int32)
        self._pools: dict[PoolId, int] = {}
        self._postings: defaultdict[int, tuple[array[int], array[float]]] = defaultdict(lambda: (array("q"), array("d")))
        self._with_words = 0

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries."""
        before = len(self._slots)
        for entry in entries:
            self._remove(entry.card.agent_id)
            slot = self._texts.add(entry.text)
            self._texts.owners[slot] = slot
            if slot >= len(self._online):
                self._online, self._pool_of = _doubled(self._online, False), _doubled(self._pool_of, _NONE)
            rows = [self._examples.add(vector) for vector in entry.examples]
            self._examples.owners[rows] = slot
            self._slots[entry.card.agent_id] = slot
            identity = (entry.card.agent_id, entry.card.pool, bool(rows))
            self._agents[slot] = _Agent(identity, slot, entry.card, entry.fingerprint, entry.terms, rows)
            self._online[slot] = entry.online
            self._pool_of[slot] = self._pools.setdefault(entry.card.pool, len(self._pools))
            self._with_words += bool(entry.terms.indices)
            for term, weight in zip(entry.terms.indices, entry.terms.values, strict=True):
                slots, weights = self._postings[term]
                slots.append(slot)
                weights.append(weight)
            await asyncio.sleep(0)  # other requests run between two entries
        if before <= MAX_AGENTS < len(self._slots):
            _log.warning(
                "index_is_large", agents=len(self._slots), hint="Searches get slow: set IOA_QDRANT_URL to a Qdrant server."
            )

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are online."""
        self._online[[self._slots[agent_id] for agent_id in agent_ids if agent_id in self._slots]] = online

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Remove agents."""
        for agent_id in agent_ids:
            self._remove(agent_id)
            await asyncio.sleep(0)

    async def search(self, query: IndexQuery) -> Candidates:
        """Compare every agent with the query."""
        need = np.asarray(query.dense, dtype=np.float32)
        texts, examples = self._texts.compare(need), self._examples.compare(need)
        scores = np.full((len(Signal), len(self._online)), -np.inf)
        by_text, by_example, by_words = scores
        by_text[: len(texts)] = texts
        rows = np.flatnonzero(self._examples.owners[: len(examples)] != _NONE)
        np.maximum.at(by_example, self._examples.owners[rows], examples[rows].astype(float))  # 15 times faster than a cast
        self._add_words(query.terms, by_words)
        scores[:, ~self._allowed(query)] = -np.inf
        return {signal: self._best(row, query.limit) for signal, row in zip(Signal, scores, strict=True)}

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Compare some agents with a need."""
        vector = np.asarray(need, dtype=np.float32)
        return {one: self._likeness(self._agents[self._slots[one]], vector) for one in agent_ids if one in self._slots}

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent."""
        return {
            agent_id: Indexed(self._agents[slot].fingerprint, bool(self._online[slot])) for agent_id, slot in self._slots.items()
        }

    def _remove(self, agent_id: AgentId) -> None:
        if (slot := self._slots.pop(agent_id, None)) is None:
            return
        agent = self._agents.pop(slot)
        self._texts.remove([slot])
        self._examples.remove(agent.example_rows)
        self._online[slot], self._pool_of[slot] = False, _NONE
        self._with_words -= bool(agent.terms.indices)
        for term in agent.terms.indices:
            slots, weights = self._postings[term]
            place = slots.index(slot)
            del slots[place], weights[place]
            if not slots:
                del self._postings[term]

    def _allowed(self, query: IndexQuery) -> np.ndarray:
        """Return for each slot whether the query may find its agent."""
        filters = query.filters
        allowed = self._online.copy() if filters.online else self._pool_of != _NONE
        if filters.tags or filters.pool is not None or filters.version is not None:
            allowed[[slot for slot, agent in self._agents.items() if not _matches(filters, agent.card)]] = False
        allowed[[self._slots[agent_id] for agent_id in query.exclude if agent_id in self._slots]] = False
        return allowed

    def _likeness(self, agent: _Agent, need: np.ndarray) -> Likeness:
        similarity, matched = float(np.vecdot(self._texts.vectors[agent.slot], need)), ""
        if agent.example_rows:
            of_agent = np.vecdot(self._examples.vectors[agent.example_rows], need)
            nearest = int(of_agent.argmax())
            similarity, matched = max(similarity, float(of_agent[nearest])), agent.card.examples[nearest]
        return Likeness(agent.card, max(-1.0, min(1.0, similarity)), matched)

    def _add_words(self, terms: SparseVector, totals: np.ndarray) -> None:
        """Write the BM25 scores of the agents with a term in common. A rare term counts more than a frequent one."""
        for term, weight in zip(terms.indices, terms.values, strict=True):
            if (found := self._postings.get(term)) is not None:
                slots, weights = np.frombuffer(found[0], np.int64), np.frombuffer(found[1])
                rarity = log((self._with_words - len(slots) + 0.5) / (len(slots) + 0.5) + 1)
                totals[slots] = np.maximum(totals[slots], 0) + weight * rarity * weights

    def _best(self, scores: np.ndarray, limit: int) -> list[Candidate]:
        """Return the best agent of each of the best pools, of equal scores the first by id."""
        slots = np.flatnonzero(scores > -np.inf)
        scores, pools = scores[slots], self._pool_of[slots]
        best = np.full(len(self._pools), -np.inf)
        np.maximum.at(best, pools, scores)
        # Sorted, because a partition of many equal values is slow: pools without a score are all equal.
        threshold = np.sort(best)[-limit] if len(best) > limit else -np.inf
        chosen = np.flatnonzero((scores == best[pools]) & (scores >= threshold))
        identities = [self._agents[slot].identity for slot in slots[chosen].tolist()]
        candidates: dict[PoolId, Candidate] = {}
        for negated, identity in sorted(zip((-scores[chosen]).tolist(), identities, strict=True)):
            if identity[1] not in candidates:
                candidates[identity[1]] = Candidate._make((*identity, -negated))
        return list(islice(candidates.values(), limit))


@dataclass(frozen=True, slots=True)
class _Agent:
    """An agent of the index, without its vectors. `identity` contains the fields of its candidates before the score."""

    identity: tuple[AgentId, PoolId, bool]
    slot: int
    card: AgentCard
    fingerprint: str
    terms: SparseVector
    example_rows: list[int]


def _matches(filters: Filters, card: AgentCard) -> bool:
    return filters.pool in (None, card.pool) and filters.version in (None, card.version) and set(filters.tags) <= set(card.tags)


class _Rows:
    """A matrix of vectors that grows, with the slot of the agent that owns each row. Unused rows are used again."""

    def __init__(self, dimension: int) -> None:
        self.vectors = np.zeros((_FIRST_ROWS, dimension), dtype=np.float32)
        self.owners = np.full(_FIRST_ROWS, _NONE, dtype=np.int32)
        self._unused = list[int]()
        self._end = 0

    def add(self, vector: Vector) -> int:
        """Store a vector; return its row."""
        if self._unused:
            row = self._unused.pop()
        else:
            row, self._end = self._end, self._end + 1
            if row == len(self.vectors):
                self.vectors, self.owners = _doubled(self.vectors, 0), _doubled(self.owners, _NONE)
        self.vectors[row] = vector
        return row

    def remove(self, rows: Sequence[int]) -> None:
        """Mark rows as unused."""
        self.owners[rows] = _NONE
        self._unused.extend(rows)

    def compare(self, need: np.ndarray) -> np.ndarray:
        """Return the cosine of each row to a need."""
        cosines: np.ndarray = np.vecdot(self.vectors[: self._end], need)  # `@` would start BLAS threads
        return cosines


def _doubled(array: np.ndarray, value: Any) -> np.ndarray:
    """Return an array of twice the length, filled up with a value."""
    return np.concatenate((array, np.full_like(array, value)))
