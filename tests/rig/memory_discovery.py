"""Discovery in memory: its real searcher and indexer over an index in plain Python, and an embedder that knows no meaning."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ioa.ports.clock import Clock
from ioa.ports.registry_view import RegistryView
from ioa.protocol.ids import AgentId
from ioa.protocol.search import IndexStatus, Search, SearchResult
from ioa_discovery.indexer import Indexer
from ioa_discovery.registry_feed import present
from ioa_discovery.replicas import Replicas
from ioa_discovery.searcher import Searcher
from ioa_discovery.terms import whole_word
from ioa_testkit.word_engines import WordEngines


class MemoryDiscovery:
    """Find agents by the words of their cards. False in this: whoever registers is found at once, and nobody's record counts."""

    def __init__(self, view: RegistryView, clock: Clock, renew_every: timedelta) -> None:
        engines = WordEngines()
        self._view = view
        self._index, self._model_id = engines.index, engines.embedder.model_id
        self._replicas = Replicas(view, clock, renew_every)
        self._indexer = Indexer(engines.index, engines.card_embedder, stem=whole_word)
        self._searcher = Searcher(engines.index, engines.embedder, self._replicas, stem=whole_word)
        self._writing = asyncio.Lock()

    async def touch(self, agent_id: AgentId) -> None:
        """Look at an agent again; what its card says and whether it is online can be searched when this returns."""
        async with self._writing:
            self._replicas.touch(agent_id)
            await self._indexer.apply(present(self._view, agent_id))

    async def search(self, search: Search) -> SearchResult:
        """Find who fits."""
        return await self._searcher.search(search)

    async def status(self) -> IndexStatus:
        """Tell how the index stands."""
        return IndexStatus(cards=self._indexer.cards, model_id=self._model_id)
