"""An index in plain Python for tests: compares every card with every need, on the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log

from ioa.ports.agent_index import Candidate, Candidates, Indexed, IndexEntry, IndexQuery, Likeness, Signal, SparseVector
from ioa.ports.embedder import Vector, cosine
from ioa.protocol.ids import AgentId, PoolId


class MemoryIndex:
    """An `AgentIndex` for tests, without numpy."""

    def __init__(self) -> None:
        self._entries: dict[AgentId, IndexEntry] = {}

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries."""
        self._entries.update({entry.card.agent_id: entry for entry in entries})

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are online."""
        for agent_id in agent_ids:
            if entry := self._entries.get(agent_id):
                self._entries[agent_id] = replace(entry, online=online)

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Remove agents."""
        for agent_id in agent_ids:
            self._entries.pop(agent_id, None)

    async def search(self, queries: Sequence[IndexQuery]) -> Sequence[Candidates]:
        """Compare every entry with every query."""
        return [self._candidates(query) for query in queries]

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return the similarity to a need of those agents that are in the index."""
        return {agent_id: _likeness(need, self._entries[agent_id]) for agent_id in agent_ids if agent_id in self._entries}

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent."""
        return {agent_id: Indexed(entry.fingerprint, entry.online) for agent_id, entry in self._entries.items()}

    def _candidates(self, query: IndexQuery) -> Candidates:
        allowed = [entry for entry in self._entries.values() if _allows(query, entry)]
        rarity = self._rarity(query.terms)
        words = [(entry, _overlap(entry.terms, rarity)) for entry in allowed]
        return {
            Signal.TEXT: _best([(entry, cosine(query.dense, entry.text)) for entry in allowed], query.limit),
            Signal.EXAMPLES: _best([(entry, _nearest(query.dense, entry)) for entry in allowed if entry.examples], query.limit),
            Signal.BM25: _best([(entry, score) for entry, score in words if score > 0], query.limit),
        }

    def _rarity(self, terms: SparseVector) -> dict[int, float]:
        """Weigh the query's terms by inverse document frequency over the cards that have words, as Qdrant does."""
        with_words = [entry for entry in self._entries.values() if entry.terms.indices]
        seen = Counter(term for entry in with_words for term in entry.terms.indices)
        total = len(with_words)
        return {
            term: value * log((total - seen[term] + 0.5) / (seen[term] + 0.5) + 1)
            for term, value in zip(terms.indices, terms.values, strict=True)
        }


def _allows(query: IndexQuery, entry: IndexEntry) -> bool:
    filters, card = query.filters, entry.card
    return (
        (entry.online or not filters.online)
        and filters.pool in (None, card.pool)
        and filters.version in (None, card.version)
        and set(filters.tags) <= set(card.tags)
        and card.agent_id not in query.exclude
    )


def _likeness(need: Vector, entry: IndexEntry) -> Likeness:
    examples = [(cosine(need, vector), text) for vector, text in zip(entry.examples, entry.card.examples, strict=True)]
    nearest, matched = max(examples, default=(-1.0, ""))
    return Likeness(entry.card, max(cosine(need, entry.text), nearest), matched)


def _nearest(dense: Vector, entry: IndexEntry) -> float:
    return max(cosine(dense, example) for example in entry.examples)


def _overlap(terms: SparseVector, rarity: Mapping[int, float]) -> float:
    return sum(value * rarity.get(term, 0.0) for term, value in zip(terms.indices, terms.values, strict=True))


def _best(scored: Sequence[tuple[IndexEntry, float]], limit: int) -> list[Candidate]:
    """Return the best agent of each of the best pools."""
    best: dict[PoolId, Candidate] = {}
    for entry, score in sorted(scored, key=lambda item: (-item[1], item[0].card.agent_id)):
        card = entry.card
        best.setdefault(card.pool, Candidate(card.agent_id, card.pool, bool(entry.examples), score))
    return list(best.values())[:limit]
