"""The index is brought in line with the registry, also after it was away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from ioa.errors import UnavailableError
from ioa.ports.agent_index import Indexed, IndexEntry
from ioa.protocol.ids import AgentId
from ioa.runtime.process import background
from ioa.testing.hashing_embedder import HashingEmbedder
from ioa.testing.memory_index import MemoryIndex
from ioa_discovery.indexer import Indexer
from ioa_discovery.registry_feed import RegistryFeed
from ioa_discovery.upkeep import Upkeep
from tests.rig.deadline import eventually
from tests.unit.discovery.test_registry_feed import A, B, C, StillView, card

AT_ONCE = timedelta(0)


class AwayIndex(MemoryIndex):
    """An index that is away as often as it is told to be. False in this besides: it loses nothing by that."""

    def __init__(self) -> None:
        super().__init__()
        self.away = 0

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries, or be away."""
        self._answer()
        await super().put(entries)

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent, or be away."""
        self._answer()
        return await super().indexed()

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise UnavailableError("away")


@asynccontextmanager
async def kept(index: MemoryIndex, feed: RegistryFeed) -> AsyncIterator[None]:
    """Keep an index in line."""
    indexer = Indexer(index, HashingEmbedder())
    async with background(Upkeep(indexer, feed, retry=AT_ONCE).keep()):
        yield


async def state(index: MemoryIndex) -> dict[AgentId, bool]:
    """Who is in the index, and alive."""
    return {agent_id: held.online for agent_id, held in (await MemoryIndex.indexed(index)).items()}


@pytest.fixture
def view() -> StillView:
    """Two agents, one of them online."""
    view = StillView(A, B)
    view.known[B] = False
    return view


async def test_the_index_becomes_what_the_registry_is(view: StillView) -> None:
    """What is missing comes in, who is gone goes, and liveness is set, without an event from the registry."""
    index, feed = MemoryIndex(), RegistryFeed(view)
    await Indexer(index, HashingEmbedder()).rebuild([card(B), card(C)], [B, C])
    async with kept(index, feed):
        await eventually(lambda: state(index), lambda seen: seen == {A: True, B: False})
    assert await state(index) == {A: True, B: False}


async def test_an_index_that_was_away_is_caught_up(view: StillView) -> None:
    """What could not be written while the index was away is written when it is back."""
    index, feed = AwayIndex(), RegistryFeed(view)
    index.away = 3
    async with kept(index, feed):
        await eventually(lambda: state(index), lambda seen: len(seen) == 2)
    assert index.away == 0
