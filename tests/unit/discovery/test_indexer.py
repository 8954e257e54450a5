"""The index follows the registry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from ioa.ports.agent_index import IndexEntry
from ioa.ports.embedder import Vector
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.testing.hashing_embedder import HashingEmbedder
from ioa.testing.memory_index import MemoryIndex
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, Indexer, RegistryEvent

A, B = AgentId("a"), AgentId("b")


def card(agent_id: AgentId, description: str = "Does things", *examples: str) -> AgentCard:
    """Make a card."""
    return AgentCard(agent_id=agent_id, name=agent_id, description=description, examples=examples, pool=PoolId(agent_id))


async def online(index: MemoryIndex) -> dict[AgentId, bool]:
    """Return which agents the index holds, and whether they are alive."""
    return {agent_id: state.online for agent_id, state in (await index.indexed()).items()}


@pytest.mark.parametrize(
    "events", [(CardStored(card(A)), AgentOnline(A)), (AgentOnline(A), CardStored(card(A)))], ids=["card first", "lease first"]
)
@pytest.mark.parametrize("together", [True, False])
async def test_card_and_lease_may_come_in_any_order(events: tuple[RegistryEvent, ...], together: bool) -> None:
    """An agent is online once both its card and its lease were seen, in one batch or in two."""
    index = MemoryIndex()
    indexer = Indexer(index, HashingEmbedder())
    for batch in [events] if together else [[event] for event in events]:
        await indexer.apply(batch)
    assert await online(index) == {A: True}


async def test_a_card_without_a_lease_is_offline() -> None:
    """A card alone makes no agent alive."""
    index = MemoryIndex()
    await Indexer(index, HashingEmbedder()).apply([CardStored(card(A))])
    assert await online(index) == {A: False}


async def test_an_agent_goes_and_comes_back() -> None:
    """A lease that ends takes the agent offline, a new one brings it back, and neither embeds anything."""
    index, embedder = MemoryIndex(), HashingEmbedder()
    indexer = Indexer(index, embedder)
    await indexer.apply([CardStored(card(A)), AgentOnline(A)])
    embedder.embedded.clear()
    await indexer.apply([AgentOffline(A)])
    gone = await online(index)
    await indexer.apply([AgentOnline(A)])
    assert (gone, await online(index), embedder.embedded) == ({A: False}, {A: True}, [])


async def test_the_same_event_twice_costs_nothing() -> None:
    """A card that is stored again unchanged is not embedded again."""
    embedder = HashingEmbedder()
    indexer = Indexer(MemoryIndex(), embedder)
    await indexer.apply([CardStored(card(A, "Does things", "an example"))])
    await indexer.apply([CardStored(card(A, "Does things", "an example"))])
    assert embedder.embedded == ["a: Does things", "an example"]


async def test_a_changed_card_replaces_the_old_one() -> None:
    """The last card of an agent is the one that is found."""
    index = MemoryIndex()
    indexer = Indexer(index, HashingEmbedder())
    await indexer.apply([AgentOnline(A), CardStored(card(A, "old")), CardStored(card(A, "new"))])
    assert (await index.compare([1.0] * 64, [A]))[A].card == card(A, "new")


async def test_a_removed_agent_is_gone_and_may_return() -> None:
    """Deregistering forgets the agent and its lease; registering again is starting anew."""
    index = MemoryIndex()
    indexer = Indexer(index, HashingEmbedder())
    await indexer.apply([CardStored(card(A)), AgentOnline(A)])
    await indexer.apply([AgentRemoved(A)])
    removed = await online(index)
    await indexer.apply([CardStored(card(A))])
    assert (removed, await online(index)) == ({}, {A: False})


async def test_removed_and_stored_again_in_one_batch() -> None:
    """Of several events of one agent the last decides."""
    index = MemoryIndex()
    indexer = Indexer(index, HashingEmbedder())
    await indexer.apply(
        [CardStored(card(A)), AgentRemoved(A), CardStored(card(A, "again")), AgentOnline(A), CardStored(card(B)), AgentRemoved(B)]
    )
    assert await online(index) == {A: True}


async def test_rebuild_makes_the_index_equal_to_the_registry() -> None:
    """Strangers go, newcomers come, liveness is set, and what is unchanged is not embedded again."""
    index, embedder = MemoryIndex(), HashingEmbedder()
    await Indexer(index, embedder).rebuild([card(A), card(B)], [A, B])
    embedder.embedded.clear()
    newcomer = AgentId("c")
    await Indexer(index, embedder).rebuild([card(A), card(newcomer)], [newcomer])
    assert await online(index) == {A: False, newcomer: True}
    assert embedder.embedded == ["c: Does things"]


async def test_rebuild_for_another_model_embeds_everything() -> None:
    """Vectors of another model are replaced."""
    index, other = MemoryIndex(), HashingEmbedder(model_id="other")
    await Indexer(index, HashingEmbedder()).rebuild([card(A)], [A])
    await Indexer(index, other).rebuild([card(A)], [A])
    assert other.embedded == ["a: Does things"]


async def test_batches_are_followed_to_the_end() -> None:
    """Everything that a source yields is in the index when following ends."""
    index = MemoryIndex()

    async def batches() -> AsyncIterator[Sequence[RegistryEvent]]:
        for number in range(200):
            yield [CardStored(card(AgentId(f"a{number}")))]

    await Indexer(index, HashingEmbedder()).follow(batches())
    assert len(await index.indexed()) == 200


async def test_cards_of_a_batch_are_embedded_together() -> None:
    """One call to the embedder serves all cards of a batch."""

    class CountingEmbedder(HashingEmbedder):
        calls = 0

        async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
            self.calls += 1
            return await super().embed(texts)

    embedder = CountingEmbedder()
    await Indexer(MemoryIndex(), embedder).apply([CardStored(card(AgentId(f"a{number}"))) for number in range(64)])
    assert embedder.calls == 1


async def test_what_an_index_holds_already_costs_nothing() -> None:
    """After a restart the indexer knows cards and liveness from the index, and only what changed is written."""

    class CountingIndex(MemoryIndex):
        changes = 0

        async def put(self, entries: Sequence[IndexEntry]) -> None:
            self.changes += 1
            await super().put(entries)

        async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
            self.changes += 1
            await super().set_online(agent_ids, online)

    index = CountingIndex()
    await Indexer(index, HashingEmbedder()).apply([CardStored(card(A)), AgentOnline(A), CardStored(card(B))])
    index.changes = 0
    indexer = Indexer(index, HashingEmbedder())
    held = set(await indexer.load())
    await indexer.apply([CardStored(card(A)), AgentOnline(A), CardStored(card(B)), AgentOffline(B)])
    assert (held, index.changes) == ({A, B}, 0)
