"""Writing the present state of agents into the index."""

from __future__ import annotations

from collections.abc import Sequence

from ioa.ports.agent_index import IndexEntry
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_testkit.word_engines import HashingEmbedder

A, B, C = AgentId("a"), AgentId("b"), AgentId("c")
DIMENSION = 64


def card(agent_id: AgentId, description: str = "Does things", *examples: str) -> AgentCard:
    """Make a card."""
    return AgentCard(agent_id=agent_id, name=agent_id, description=description, examples=examples, pool=PoolId(agent_id))


def agent(agent_id: AgentId, *, online: bool = True) -> dict[AgentId, RegisteredAgent | None]:
    """Return the state of a registered agent."""
    return {agent_id: RegisteredAgent(card(agent_id), online)}


async def online(index: ExactIndex) -> dict[AgentId, bool]:
    """Return whether each agent of an index is online."""
    return {agent_id: state.online for agent_id, state in (await ExactIndex.indexed(index)).items()}


async def test_changed_status_embeds_nothing() -> None:
    """A lease that ends takes the agent offline, a new lease brings it back, and neither embeds a text."""
    index, embedder = ExactIndex(DIMENSION), HashingEmbedder()
    indexer, seen = Indexer(index, embedder), []
    for is_online in (False, True, False, True):
        await indexer.apply(agent(A, online=is_online))
        seen.append(await online(index))
    assert (seen, embedder.embedded) == ([{A: False}, {A: True}] * 2, ["a: Does things"])


async def test_changed_card_replaces_the_old_one() -> None:
    """The last card of an agent is found; an unchanged card is not embedded again."""
    index, embedder = ExactIndex(DIMENSION), HashingEmbedder()
    indexer = Indexer(index, embedder)
    for one in (card(A, "old", "an example"), card(A, "new"), card(A, "new")):
        await indexer.apply({A: RegisteredAgent(one, online=True)})
    assert (await index.compare([1.0] * DIMENSION, [A]))[A].card == card(A, "new")
    assert embedder.embedded == ["a: old", "an example", "a: new"]


async def test_another_model_embeds_everything() -> None:
    """Vectors of another model are replaced."""
    index, other = ExactIndex(DIMENSION), HashingEmbedder(model_id="other")
    await Indexer(index, HashingEmbedder()).apply(agent(A))
    indexer = Indexer(index, other)
    await indexer.load()
    await indexer.apply(agent(A))
    assert other.embedded == ["a: Does things"]


async def test_loaded_state_costs_nothing() -> None:
    """After a restart only changes are written to an index that outlives the process."""

    class CountingIndex(ExactIndex):
        changes = 0

        async def put(self, entries: Sequence[IndexEntry]) -> None:
            self.changes += 1
            await super().put(entries)

        async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
            self.changes += 1
            await super().set_online(agent_ids, online)

    index = CountingIndex(DIMENSION)
    await Indexer(index, HashingEmbedder()).apply(agent(A) | agent(B, online=False))
    index.changes = 0
    indexer = Indexer(index, HashingEmbedder())
    loaded = set(await indexer.load())
    await indexer.apply(agent(A) | agent(B, online=False))
    assert (loaded, index.changes) == ({A, B}, 0)
