"""Search for agents that fit a need: the answer to `discovery.search` (paper, section 2.3.1).

Each need is embedded with its keywords and searched by all signals of the index; the signals are fused over pools. A hit's
`score` orders the hits of its need only. Its `similarity` is absolute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ioa.ports.agent_index import AgentIndex, Candidates, IndexQuery, Likeness, Signal
from ioa.ports.embedder import Embedder, Vector
from ioa.protocol.agents.search import Hit, Need, NeedHits, Search, SearchResult, SignalScore, Why
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import PoolId
from ioa_discovery.experience import Experience
from ioa_discovery.fusion import normalise, rank, without_ties
from ioa_discovery.ranking import Match, Placed, Ranking, excluded
from ioa_discovery.replicas import Replicas
from ioa_discovery.terms import query_terms

PREFETCH = 64
"""Candidates per signal. With 100, hardly more agents are found, in half as much time again."""
ANSWER_BYTES = MAX_PAYLOAD_BYTES * 3 // 4
"""Maximum bytes of the hits in one answer. The rest is for the needs."""


@dataclass(frozen=True)
class _Fused:
    """The raw and normalised scores of each signal, and the pools that they found, best first. Most matches are never read."""

    raw: Mapping[Signal, Mapping[PoolId, float]]
    normalised: Mapping[Signal, Mapping[PoolId, float]]
    matches: Iterator[Match]


class Searcher:
    """Answer searches from an index, with the embedder that the index was filled by.

    Args:
        index: The index of cards.
        embedder: The embedder of needs.
        replicas: Status and load of agents. Default None: the agent found is named, and counts as online and idle.
        experience: Outcomes of tasks. Default None: they change no score.
    """

    def __init__(
        self,
        index: AgentIndex,
        embedder: Embedder,
        replicas: Replicas | None = None,
        experience: Experience | None = None,
    ) -> None:
        self._index = index
        self._embedder = embedder
        self._ranking = Ranking(replicas, experience)

    async def search(self, request: Search) -> SearchResult:
        """Return the hits of each need, best first, at most one replica of a pool.

        A need that no agent serves returns the nearest agents: check their `similarity`. If the hits exceed `ANSWER_BYTES`, the
        last of each need are left out, and the result is marked as incomplete.
        """
        texts = [_need_text(need) for need in request.needs]
        vectors = await self._embedder.embed(texts)
        # One need after the other: each takes a millisecond on the event loop, and other requests run when it asks the index.
        by_need = [
            NeedHits(need=need, hits=await self._hits(request, need, text, vector))
            for need, text, vector in zip(request.needs, texts, vectors, strict=True)
        ]
        fitting = _fitting(by_need)
        return SearchResult(by_need=fitting, budget=request.budget, complete=fitting == tuple(by_need))

    async def _hits(self, request: Search, need: Need, text: str, vector: Vector) -> tuple[Hit, ...]:
        """Find, choose and describe the agents; an agent that was removed during the search is left out."""
        terms = query_terms(text)
        query = IndexQuery(vector, terms, need.filters, excluded(request, need), max(PREFETCH, need.k))
        found = await self._index.search(query)
        fused = _fuse(_settled(found, need.k))
        placed = self._ranking.place(request, need, fused.matches)
        near = await self._index.compare(vector, [one.match.found for one in placed])
        return tuple(_hit(fused, one, near[one.match.found]) for one in placed if one.match.found in near)


def _need_text(need: Need) -> str:
    """Return the need as one query, with its keywords."""
    return "\n".join((need.text, ", ".join(need.keywords))) if need.keywords else need.text


def _fitting(by_need: Sequence[NeedHits]) -> tuple[NeedHits, ...]:
    """Keep the first hits of each need that fit into one answer, equally many of each need."""
    left = ANSWER_BYTES
    for place in range(max(len(one.hits) for one in by_need)):
        left -= sum(len(encode(hit)) for one in by_need for hit in one.hits[place : place + 1])
        if left < 0:
            return tuple(NeedHits(need=one.need, hits=one.hits[:place]) for one in by_need)
    return tuple(by_need)


def _settled(found: Candidates, wanted: int) -> Candidates:
    """Remove candidates that a signal found by chance, unless too few would be left."""
    sure = {signal: without_ties(candidates, max(PREFETCH, wanted)) for signal, candidates in found.items()}
    is_enough = any(len(candidates) >= wanted for candidates in sure.values())  # a pool occurs once in each signal
    return sure if is_enough or len({one.pool for candidates in sure.values() for one in candidates}) >= wanted else found


def _fuse(found: Candidates) -> _Fused:
    """Fuse the signals over pools."""
    raw = {signal: {one.pool: one.score for one in candidates} for signal, candidates in found.items()}
    normalised = {signal: normalise(scores) for signal, scores in raw.items()}
    by_rising_precedence = (Signal.BM25, Signal.TEXT, Signal.EXAMPLES)
    found_by = {one.pool: one for signal in by_rising_precedence for one in found.get(signal, ())}
    silent = {pool for pool, candidate in found_by.items() if not candidate.has_examples}
    ranked = rank(list(normalised.values()), one_less=silent)
    return _Fused(raw, normalised, (Match(pool, found_by[pool].agent_id, score) for pool, score in ranked))


def _hit(fused: _Fused, placed: Placed, near: Likeness) -> Hit:
    named, pool = placed.named, placed.match.pool
    signals = tuple(
        SignalScore(signal=signal, raw=scores[pool], fused=fused.normalised[signal][pool])
        for signal, scores in fused.raw.items()
        if pool in scores
    )
    return Hit(
        card=near.card if near.card.agent_id == named.agent_id else near.card.model_copy(update={"agent_id": named.agent_id}),
        score=placed.score,
        similarity=near.similarity,
        matched_example=near.matched_example,
        online=named.online,
        load=named.load,
        replicas=named.replicas,
        record=placed.record,
        why=Why(match=placed.match.score, signals=signals, shifts=placed.moved),
    )
