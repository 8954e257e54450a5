"""Which agents fit a need: the answer to `ioa.v1.discovery.search` (paper, section 2.3.1).

Each need is embedded with its keywords, looked up by all signals of the index, and the signals are fused over pools. What a
hit's `score` means is relative to its need; `similarity` is absolute, and says whether anybody fits at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from ioa.cancellation import TaskGroup
from ioa.ports.agent_index import NO_TERMS, AgentIndex, Candidate, Candidates, IndexQuery, Likeness, Signal, SparseVector
from ioa.ports.embedder import Embedder, Vector
from ioa.protocol.cards import MAX_CARD_BYTES, AgentCard, abridged
from ioa.protocol.codec import MAX_PAYLOAD_BYTES
from ioa.protocol.ids import PoolId
from ioa.protocol.search import Hit, Need, NeedHits, Search, SearchResult, SignalScore, Why
from ioa_discovery.search.experience import Experience
from ioa_discovery.search.fusion import best_of_pools, normalise, rank, without_ties
from ioa_discovery.search.profile import need_text
from ioa_discovery.search.ranking import Match, Placed, Ranking, excluded
from ioa_discovery.search.replicas import Replicas
from ioa_discovery.search.terms import Stem, english_stem, query_vector, terms_of, words

PREFETCH = 64
"""Candidates of each signal that are fused. A hundred find hardly more, and take half as long again."""
_ROUNDS = 8
"""How often a signal whose candidates are of too few pools is asked for more, of other pools: more than a team has roles."""
_WORDS_AT_ONCE = 64
"""How many words of a need are read at once: new ones take a millisecond and more."""
_PLACES_TOLD = 2
"""To how many decimal places agents are told scores."""
_HIT_BYTES = 700
"""What a hit takes in an answer besides the texts of its card."""
_TEXT_BYTES = 8
ANSWER_BYTES = MAX_PAYLOAD_BYTES * 3 // 4
"""What the hits of one answer may take; the needs themselves stand in it as well."""


@dataclass(frozen=True)
class _Fused:
    """What the signals say of the pools, raw and normalised, the pools by fused score, best first, and who stands for each."""

    raw: Mapping[Signal, Mapping[PoolId, float]]
    normalised: Mapping[Signal, Mapping[PoolId, float]]
    ranked: Sequence[tuple[PoolId, float]]
    found_by: Mapping[PoolId, Candidate]

    def matches(self) -> Iterator[Match]:
        """Yield the matches, best first. Most are never looked at."""
        for pool, score in self.ranked:
            yield Match(pool, self.found_by[pool].agent_id, score)


class Searcher:
    """Answer searches from an index, with the embedder that the index was filled by.

    Args:
        index: Where the cards are.
        embedder: What it was filled by.
        replicas: Who is alive and how busy; without it, the first of a pool is named, and counts as online and idle.
        experience: How tasks went; without it, everybody is untried.
        stem: What the index was filled by.
    """

    def __init__(
        self,
        index: AgentIndex,
        embedder: Embedder,
        replicas: Replicas | None = None,
        experience: Experience | None = None,
        *,
        stem: Stem = english_stem,
    ) -> None:
        self._stem = stem
        self._index = index
        self._embedder = embedder
        self._standings = Ranking(replicas, experience)
        self._reading = asyncio.Lock()

    async def search(self, request: Search) -> SearchResult:
        """Return the hits of each need, best first, at most one replica of a pool, and the merged list.

        A need that nobody serves has the least unfit agents as its hits: look at their `similarity`. If not all hits fit into one
        answer, the last of each need are left out, and the result says so.
        """
        vectors, found = await self._found(request)
        # One need after the other: each takes milliseconds on the event loop, and lets others go first when it asks the index.
        by_need = [
            NeedHits(need=need, hits=await self._hits(request, need, vector, candidates))
            for need, vector, candidates in zip(request.needs, vectors, found, strict=True)
        ]
        fitting = _fitting([answer.hits for answer in by_need], request.budget)
        complete = all(len(kept) == len(answer.hits) for kept, answer in zip(fitting, by_need, strict=True))
        by_need = [NeedHits(need=answer.need, hits=kept) for kept, answer in zip(fitting, by_need, strict=True)]
        return SearchResult(by_need=tuple(by_need), merged=merge(fitting)[: request.budget], complete=complete)

    async def _found(self, request: Search) -> tuple[Sequence[Vector], list[Candidates]]:
        """Embed the needs and ask the index for each: by its words meanwhile, since both take long and neither needs the other."""
        texts = [need_text(need) for need in request.needs]
        try:
            async with TaskGroup() as group:
                embedding = group.create_task(self._embedder.embed(texts))
                by_words = [
                    IndexQuery(None, await self._terms(text), need.filters, excluded(request, need), max(PREFETCH, need.k))
                    for need, text in zip(request.needs, texts, strict=True)
                ]
                alike = await self._index.search(by_words)
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        vectors = embedding.result()
        queries = [replace(query, dense=vector) for query, vector in zip(by_words, vectors, strict=True)]
        near = await self._index.search([replace(query, terms=NO_TERMS) for query in queries])
        found: list[Candidates] = [{**one, Signal.BM25: other[Signal.BM25]} for one, other in zip(near, alike, strict=True)]
        return vectors, await self._widened(found, queries, [need.k for need in request.needs])

    async def _terms(self, text: str) -> SparseVector:
        """Read the words of a need, some at a time, between which all searches that read words take turns, and others go first."""
        found, left = list[int](), words(text)
        while left:
            some, left = left[:_WORDS_AT_ONCE], left[_WORDS_AT_ONCE:]
            async with self._reading:
                found += terms_of(some, self._stem)
                await asyncio.sleep(0)
        return query_vector(found)

    async def _widened(self, found: list[Candidates], queries: Sequence[IndexQuery], wanted: Sequence[int]) -> list[Candidates]:
        """Ask the index for more, of other pools, where the replicas of a few large ones crowded the others out.

        To ask for so many candidates that others are among them would take seconds of the engine, for one search.
        """
        for number, query in enumerate(queries):
            cut = _cut(found[number], query.limit)
            for _ in range(_ROUNDS):
                if not cut or _pools(found[number]) >= wanted[number]:
                    break
                seen = {signal: tuple({one.pool: None for one in of_signal}) for signal, of_signal in found[number].items()}
                [more] = await self._index.search([replace(query, without=seen)])
                cut = _cut(more, query.limit)
                found[number] = {signal: [*of_signal, *more[signal]] for signal, of_signal in found[number].items()}
            found[number] = _settled(found[number], cut, wanted[number])
        return found

    async def _hits(self, request: Search, need: Need, vector: Vector, candidates: Candidates) -> tuple[Hit, ...]:
        """Choose and describe the agents; one that was removed while the search ran is left out."""
        fused = _fused(candidates)
        placed = self._standings.place(request, need, fused.matches())
        near = await self._index.compare(vector, [one.match.found for one in placed])
        hits = (_hit(fused, one, near[one.match.found]) for one in placed if one.match.found in near)
        return tuple(hits) if request.by is None else tuple(map(_as_agents_see_it, hits))


def merge(lists: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Take the best hit of each need, then the second of each, and so on; an agent's first appearance counts.

    Every prefix of the result serves all needs alike, so that a caller may cut it anywhere.
    """
    merged: dict[PoolId, Hit] = {}
    for hit in chain.from_iterable(zip_longest(*lists)):
        if hit is not None:
            merged.setdefault(hit.card.pool, hit)
    return tuple(merged.values())


def _fitting(lists: Sequence[Sequence[Hit]], budget: int | None) -> list[tuple[Hit, ...]]:
    """Keep of each need's hits the first ones, as many as fit into one answer, in which most stand in the merged list as well."""
    kept: list[list[Hit]] = [[] for _ in lists]
    merged: set[PoolId] = set()
    left = ANSWER_BYTES
    for place in range(max(map(len, lists), default=0)):
        for of_need, hits in zip(kept, lists, strict=True):
            if place >= len(hits):
                continue
            hit = hits[place]
            is_new = hit.card.pool not in merged and (budget is None or len(merged) < budget)
            left -= _size(hit) * (2 if is_new else 1)
            if left < 0:
                return [tuple(hits) for hits in kept]
            of_need.append(hit)
            if is_new:
                merged.add(hit.card.pool)
    return [tuple(hits) for hits in kept]


def _size(hit: Hit) -> int:
    """About how many bytes a hit takes. An estimate is enough, since few hits are nowhere near the bound."""
    return _HIT_BYTES + _text_bytes(hit.card)


def _text_bytes(card: AgentCard) -> int:
    texts = (
        card.description,
        *card.examples,
        *card.tags,
        *(text for skill in card.skills for text in (skill.name, skill.description)),
    )
    return sum(len(text.encode()) + _TEXT_BYTES for text in texts)


def _cut(found: Candidates, limit: int) -> Collection[Signal]:
    """Which signals may find more than was asked for."""
    return {signal for signal, candidates in found.items() if len(candidates) >= limit}


def _settled(found: Candidates, cut: Collection[Signal], wanted: int) -> Candidates:
    """Leave out whom a signal found by chance, unless too few would be left."""
    sure = {signal: without_ties(candidates) if signal in cut else candidates for signal, candidates in found.items()}
    return sure if _pools(sure) >= wanted else found


def _pools(found: Candidates) -> int:
    return len({candidate.pool for candidates in found.values() for candidate in candidates})


def _fused(found: Candidates) -> _Fused:
    """Fuse the signals over pools."""
    raw = {signal: best_of_pools(candidates) for signal, candidates in found.items()}
    normalised = {signal: normalise(scores) for signal, scores in raw.items()}
    replicas = _found_by(found)
    silent = {pool for pool, candidate in replicas.items() if not candidate.has_examples}
    ranked = rank(list(normalised.values()), one_less=silent)
    return _Fused(raw, normalised, ranked, replicas)


def _found_by(found: Candidates) -> dict[PoolId, Candidate]:
    """For each pool the candidate that is most similar, which a signal names first; of equals, as replicas are, the first by id."""
    best: dict[PoolId, Candidate] = {}
    for signal in (Signal.EXAMPLES, Signal.TEXT, Signal.BM25):
        of_signal: dict[PoolId, Candidate] = {}
        for candidate in found.get(signal, ()):
            agent_id, pool, _, score = candidate
            known = of_signal.get(pool)
            if known is None or (score == known.score and agent_id < known.agent_id):
                of_signal[pool] = candidate
        best = of_signal | best
    return best


def _as_agents_see_it(hit: Hit) -> Hit:
    """Leave out why it stands there: by how rare a word is an agent reads off what stands on cards that exclude it."""
    return hit.model_copy(update={"score": round(hit.score, _PLACES_TOLD), "why": Why()})


def _hit(fused: _Fused, placed: Placed, near: Likeness) -> Hit:
    named, pool = placed.named, placed.match.pool
    signals = tuple(
        SignalScore(signal=signal, raw=scores[pool], fused=fused.normalised[signal][pool])
        for signal, scores in fused.raw.items()
        if pool in scores
    )
    found = near.card.agent_id == named.agent_id
    # An older registry took cards of any size. One of them, found first, would leave no room for anybody else.
    card = abridged(near.card, MAX_CARD_BYTES) if _text_bytes(near.card) > MAX_CARD_BYTES // 2 else near.card
    return Hit(
        card=card if found else card.model_copy(update={"agent_id": named.agent_id}),
        score=placed.score,
        similarity=near.similarity,
        matched_example=near.matched_example,
        online=named.online,
        load=named.load,
        replicas=named.replicas,
        record=placed.record,
        why=Why(match=placed.match.score, signals=signals, shifts=placed.moved),
    )
