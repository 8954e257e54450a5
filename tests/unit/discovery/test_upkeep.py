"""The index is brought in line with the registry, also after it was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from ioa.errors import UnavailableError
from ioa.ports.agent_index import Indexed, IndexEntry
from ioa.ports.embedder import Vector
from ioa.ports.inspection import CHANGING
from ioa.protocol.ids import AgentId
from ioa.quotas import Rate
from ioa.runtime.process import background
from ioa.testing.hashing_embedder import HashingEmbedder
from ioa.testing.memory_index import MemoryIndex
from ioa_discovery.indexer import AgentOnline, CardStored, Indexer
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


class HeldEmbedder(HashingEmbedder):
    """Embeds when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.may.set()
        self.waiting = 0

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return the vectors of texts, when they may be had."""
        self.waiting += 1
        await self.may.wait()
        self.waiting -= 1
        return await super().embed(texts)


class ManualSeconds:
    """Seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@asynccontextmanager
async def kept(index: MemoryIndex, feed: RegistryFeed, embedder: HashingEmbedder | None = None) -> AsyncIterator[None]:
    """Keep an index in line."""
    indexer = Indexer(index, embedder or HashingEmbedder(), changes=feed)
    async with background(Upkeep(indexer, feed, retry=AT_ONCE).keep()):
        yield


@asynccontextmanager
async def followed(view: StillView, changes: Rate) -> AsyncIterator[tuple[MemoryIndex, HashingEmbedder, RegistryFeed]]:
    """Both agents are indexed, and what is changed from now on counts."""
    index, embedder, feed = MemoryIndex(), HashingEmbedder(), RegistryFeed(view, changes)
    async with kept(index, feed, embedder):
        await eventually(lambda: state(index), lambda seen: len(seen) == 2)
        yield index, embedder, feed


async def state(index: MemoryIndex) -> dict[AgentId, bool]:
    """Who is in the index, and alive."""
    return {agent_id: held.online for agent_id, held in (await index.indexed()).items()}


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
        await eventually(index.count, lambda seen: seen == 2)
    assert index.away == 0


async def test_an_index_that_lost_everything_is_filled_again(view: StillView) -> None:
    """When the index says that it was started again it is compared with the registry, and nothing has to change there."""
    index, feed = MemoryIndex(), RegistryFeed(view)
    async with kept(index, feed):
        await eventually(lambda: state(index), lambda seen: len(seen) == 2)
        await index.remove([A, B])
        feed.compare()
        await eventually(lambda: state(index), lambda seen: seen == {A: True, B: False})
    assert await index.count() == 2


async def test_an_agent_that_changes_its_card_again_and_again_is_held_back(view: StillView) -> None:
    """A few changes are indexed at once, then one in a while, and the newest in the end; others, and its leases, do not wait."""
    async with followed(view, Rate(per_second=2, burst=3)) as (index, embedder, feed):
        for number in range(40):
            view.says[A] = f"The {number}th"
            feed.touch(A)
            await asyncio.sleep(0.005)
        view.known[A] = False
        view.says[B] = "Something else"
        feed.touch(A)
        feed.touch(B)
        await eventually(lambda: state(index), lambda seen: not seen[A])
        await eventually(lambda: "b: Something else" in embedder.embedded)
        soon, named = embedder.embedded.count("a: The 39th"), [(one.caller, one.family) for one in feed.slowed()]
        await eventually(lambda: "a: The 39th" in embedder.embedded)
        of_a = [text for text in embedder.embedded if text.startswith("a: ")]
    assert (soon, named, len(of_a), of_a[-1]) == (0, [(A, CHANGING)], 5, "a: The 39th")


async def test_a_dear_card_may_change_less_often(view: StillView) -> None:
    """What it takes to embed a card counts, so that one that is as dear as several of plain words waits for as many turns."""
    now, embedder = ManualSeconds(), HashingEmbedder()
    indexer = Indexer(MemoryIndex(), embedder, changes=RegistryFeed(view, now=now))
    signs = {A: ("a " * 2_000,) * 6, B: ("a " * 2_000,)}
    for number in range(101):
        for agent_id, examples in signs.items():
            told = card(agent_id, f"The {number}th").model_copy(update={"examples": examples})
            await indexer.apply([CardStored(told), AgentOnline(agent_id)])
        now.seconds += 10
    changes = {agent_id: sum(text.startswith(f"{agent_id}: ") for text in embedder.embedded) - 1 for agent_id in signs}
    assert changes == {A: 26, B: 100}


async def test_who_comes_and_goes_does_not_wait_for_cards(view: StillView) -> None:
    """While a newcomer's card is being embedded, which may take long, others are taken offline and online, and are removed."""
    embedder, index, feed = HeldEmbedder(), MemoryIndex(), RegistryFeed(view)
    async with kept(index, feed, embedder):
        await eventually(lambda: state(index), lambda seen: seen == {A: True, B: False})
        embedder.may.clear()
        view.known[C] = True
        feed.touch(C)
        await eventually(lambda: embedder.waiting)
        view.known[B] = True
        feed.touch(B)
        await eventually(lambda: state(index), lambda seen: seen == {A: True, B: True})
        view.known[C] = False
        del view.known[A]
        feed.touch(C)
        feed.touch(A)
        await eventually(lambda: state(index), lambda seen: seen == {B: True})
        embedder.may.set()
        await eventually(lambda: state(index), lambda seen: seen == {B: True, C: False})


async def test_what_is_sent_again_unchanged_is_no_change(view: StillView) -> None:
    """However often an agent comes, goes and registers the same card, its next change is indexed at once."""
    async with followed(view, Rate(per_second=0.001, burst=1)) as (index, embedder, feed):
        for number in range(20):
            view.known[A] = number % 2 == 0
            feed.touch(A)
            await eventually(lambda: state(index), lambda seen: seen[A] is view.known[A])
        view.says[A] = "Something else"
        feed.touch(A)
        await eventually(lambda: "a: Something else" in embedder.embedded)
    assert feed.slowed() == []
