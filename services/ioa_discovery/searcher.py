"""Which agents fit a need: the answer to `ioa.v1.discovery.search` (paper, section 2.3.1).

Each need is embedded with its keywords, looked up by all signals of the index, and the signals are fused over pools. What a
hit's `score` means is relative to its need; `similarity` is absolute, and says whether anybody fits at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from ioa.ports.agent_index import AgentIndex, Candidate, Candidates, IndexEntry, IndexQuery
from ioa.ports.embedder import Embedder, Vector, cosine
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import Hit, NeedHits, Search, SearchResult
from ioa_discovery.fusion import best_of_pools, fuse
from ioa_discovery.profile import need_text
from ioa_discovery.terms import query_terms

PREFETCH = 100
"""Candidates of each signal that are fused."""
MAX_PREFETCH = 10_000
_WIDER = 10


class Searcher:
    """Answer searches from an index, with the embedder that the index was filled by."""

    def __init__(self, index: AgentIndex, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder

    async def search(self, request: Search) -> SearchResult:
        """Return the hits of each need, best first, at most one replica of a pool, and the merged list.

        A need that nobody serves has the least unfit agents as its hits: look at their `similarity`.
        """
        queries = await self._queries(request)
        found = await self._candidates(queries, [need.k for need in request.needs])
        ranked = [_ranked(candidates)[: need.k] for candidates, need in zip(found, request.needs, strict=True)]
        entries = await self._index.fetch(sorted({agent_id for agents in ranked for agent_id, _ in agents}))
        by_need = tuple(
            NeedHits(need=need, hits=_hits(query.dense, agents, entries))
            for need, query, agents in zip(request.needs, queries, ranked, strict=True)
        )
        return SearchResult(by_need=by_need, merged=merge(answer.hits for answer in by_need))

    async def _queries(self, request: Search) -> list[IndexQuery]:
        texts = [need_text(need) for need in request.needs]
        vectors = await self._embedder.embed(texts)
        words = await asyncio.to_thread(lambda: [query_terms(text) for text in texts])
        return [
            IndexQuery(dense=vector, terms=terms, filters=need.filters, exclude=request.exclude, limit=max(PREFETCH, need.k))
            for need, vector, terms in zip(request.needs, vectors, words, strict=True)
        ]

    async def _candidates(self, queries: Sequence[IndexQuery], wanted: Sequence[int]) -> list[Candidates]:
        """Ask the index; ask it for more where the replicas of a few large pools crowded the others out."""
        found = list(await self._index.search(queries))
        for number, query in enumerate(queries):
            while _is_crowded(found[number], query.limit, wanted[number]):
                query = replace(query, limit=query.limit * _WIDER)
                [found[number]] = await self._index.search([query])
        return found


def merge(lists: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Take the best hit of each need, then the second of each, and so on; an agent's first appearance counts.

    Every prefix of the result serves all needs alike, so that a caller may cut it anywhere.
    """
    merged: dict[PoolId, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*lists)):
        if hit is not None:
            merged.setdefault(hit.card.pool, hit)
    return tuple(merged.values())


def _is_crowded(found: Candidates, limit: int, wanted: int) -> bool:
    pools = {candidate.pool for candidates in found.values() for candidate in candidates}
    there_is_more = any(len(candidates) >= limit for candidates in found.values())
    return len(pools) < wanted and there_is_more and limit < MAX_PREFETCH


def _ranked(found: Candidates) -> list[tuple[AgentId, float]]:
    """Fuse the signals over pools and name one replica of each."""
    replicas: dict[PoolId, Candidate] = {}
    for candidate in chain.from_iterable(found.values()):
        known = replicas.setdefault(candidate.pool, candidate)
        if candidate.agent_id < known.agent_id:
            replicas[candidate.pool] = candidate
    silent = {pool for pool, candidate in replicas.items() if not candidate.has_examples}
    fused = fuse((best_of_pools(candidates) for candidates in found.values()), one_less=silent)
    return [(replicas[pool].agent_id, score) for pool, score in fused]


def _hits(need: Vector, agents: Sequence[tuple[AgentId, float]], entries: Mapping[AgentId, IndexEntry]) -> tuple[Hit, ...]:
    """Describe the agents; one that was removed while the search ran is left out."""
    return tuple(_hit(need, entries[agent_id], score) for agent_id, score in agents if agent_id in entries)


def _hit(need: Vector, entry: IndexEntry, score: float) -> Hit:
    examples = [(cosine(need, vector), text) for vector, text in zip(entry.examples, entry.card.examples, strict=True)]
    nearest, matched = max(examples, default=(-1.0, ""))
    return Hit(card=entry.card, score=score, similarity=max(cosine(need, entry.text), nearest), matched_example=matched)
