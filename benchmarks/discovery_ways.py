"""Ways of finding agents that the evaluation compares: discovery as it is, its parts alone, and the original's algorithm.

All of them have the same embedding model and the same cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Protocol

import numpy as np

from ioa.ports.agent_index import AgentIndex, IndexQuery, Signal
from ioa.ports.embedder import Embedder
from ioa.protocol.agents.search import MAX_K, Need, Search
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId
from ioa_discovery.searcher import Searcher
from ioa_discovery.terms import query_terms

CANDIDATES = 12
"""The longest list of candidates for a whole task that is looked at."""
ORIGINAL_LIMIT = 3
"""Hits per characteristic in the original (OpenBMB/IoA, `agent_registry.yaml`)."""


class Way(Protocol):
    """A way of finding agents."""

    @property
    def name(self) -> str:
        """Say what the table shows."""
        ...

    async def rank(self, need: Need) -> Sequence[AgentId]:
        """Return the agents for one need, best first, at most `MAX_K`."""
        ...

    async def candidates(self, needs: Sequence[Need]) -> Sequence[AgentId]:
        """Return one list for a task of several needs, at least `CANDIDATES` long if there are so many."""
        ...


def bare(need: Need) -> Need:
    """Take the keywords off a need."""
    return need.model_copy(update={"keywords": ()})


class Ours:
    """Discovery's searcher, with needs as sentences, or with their keywords too."""

    def __init__(self, searcher: Searcher, *, with_keywords: bool) -> None:
        self._searcher = searcher
        self._with_keywords = with_keywords
        self.name = "ours, with keywords" if with_keywords else "ours"

    async def rank(self, need: Need) -> Sequence[AgentId]:
        """Search for one need."""
        result = await self._searcher.search(Search(needs=(self._put(need, MAX_K),)))
        return [hit.card.agent_id for hit in result.by_need[0].hits]

    async def candidates(self, needs: Sequence[Need]) -> Sequence[AgentId]:
        """Search for all needs at once."""
        result = await self._searcher.search(Search(needs=tuple(self._put(need, CANDIDATES) for need in needs)))
        return [hit.card.agent_id for hit in result.merged]

    def _put(self, need: Need, k: int) -> Need:
        return (need if self._with_keywords else bare(need)).model_copy(update={"k": k})


class OneSignal:
    """One signal of the index by itself; the lists of several needs are merged in turns, as discovery does."""

    def __init__(self, index: AgentIndex, embedder: Embedder, signal: Signal, name: str) -> None:
        self._index = index
        self._embedder = embedder
        self._signal = signal
        self.name = name

    async def rank(self, need: Need) -> Sequence[AgentId]:
        """Search for one need by its text."""
        [vector] = await self._embedder.embed([need.text])
        query = IndexQuery(dense=vector, terms=query_terms(need.text), filters=need.filters, exclude=(), limit=MAX_K)
        found = await self._index.search(query)
        return [candidate.agent_id for candidate in found[self._signal]]

    async def candidates(self, needs: Sequence[Need]) -> Sequence[AgentId]:
        """Search for each need and take the hits in turns."""
        lists = [await self.rank(need) for need in needs]
        return list(dict.fromkeys(name for name in chain.from_iterable(zip_longest(*lists)) if name is not None))


class Original:
    """The original's search: the three nearest descriptions for each characteristic, one after the other, each agent once.

    It knows neither names nor examples. A need's characteristics are its keywords, or its text where keywords are not wanted.
    """

    def __init__(self, embedder: Embedder, agents: Sequence[AgentId], descriptions: np.ndarray, *, by_keywords: bool) -> None:
        self._embedder = embedder
        self._agents = agents
        self._descriptions = descriptions
        self._by_keywords = by_keywords
        self.name = "original, by keywords" if by_keywords else "original, by needs"

    async def rank(self, need: Need) -> Sequence[AgentId]:
        """Search for the characteristics of one need."""
        return await self.candidates([need])

    async def candidates(self, needs: Sequence[Need]) -> Sequence[AgentId]:
        """Search for the characteristics of all needs in one flat list."""
        wanted = [text for need in needs for text in (self._by_keywords and need.keywords) or (need.text,)]
        vectors = np.array(await self._embedder.embed(wanted))
        nearest = np.argsort(-(vectors @ self._descriptions.T), axis=1, kind="stable")[:, :ORIGINAL_LIMIT]
        return list(dict.fromkeys(self._agents[number] for number in nearest.ravel().tolist()))


async def create_ways(
    cards: Sequence[AgentCard], index: AgentIndex, embedder: Embedder, *, with_keywords: bool
) -> Mapping[str, Way]:
    """Make every way over an index that holds the cards; those by keywords only where needs have some."""
    searcher = Searcher(index, embedder)
    described = np.array(await embedder.embed([card.description for card in cards]))
    agents = [card.agent_id for card in cards]
    ways: list[Way] = [
        Ours(searcher, with_keywords=False),
        OneSignal(index, embedder, Signal.BM25, "BM25 alone"),
        OneSignal(index, embedder, Signal.TEXT, "dense alone"),
        Original(embedder, agents, described, by_keywords=False),
    ]
    if with_keywords:
        ways += [Ours(searcher, with_keywords=True), Original(embedder, agents, described, by_keywords=True)]
    return {way.name: way for way in ways}
