"""The feed tells what touched agents are now, those touched last first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.load import IDLE, Load
from ioa.protocol.registry_records import CardRecord
from ioa_discovery.indexer import AgentOffline, AgentOnline, AgentRemoved, CardStored, RegistryEvent
from ioa_discovery.registry_feed import BATCH_AGENTS, RegistryFeed
from tests.rig.memory_registry import MemoryRegistryView

A, B, C = AgentId("a"), AgentId("b"), AgentId("c")


def card(agent_id: AgentId, description: str = "Does things") -> AgentCard:
    """Make a card."""
    return AgentCard(agent_id=agent_id, name=agent_id, description=description, pool=PoolId(agent_id))


class StillView(MemoryRegistryView):
    """A view of a registry. False in this: it changes only when a test says so."""

    def __init__(self, *agent_ids: AgentId) -> None:
        self.known = dict.fromkeys(agent_ids, True)
        self.says: dict[AgentId, str] = {}

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """The card of an agent."""
        if agent_id not in self.known:
            return None
        return CardRecord(card=card(agent_id, self.says.get(agent_id, "Does things")), registered_at=datetime.now(UTC))

    def cards(self) -> Sequence[CardRecord]:
        """All cards."""
        return [record for agent_id in self.known if (record := self.card(agent_id)) is not None]

    def of_pool(self, pool: PoolId) -> Sequence[CardRecord]:
        """The cards of a pool."""
        return [record for record in self.cards() if record.card.pool == pool]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent's lease stands."""
        return self.known.get(agent_id, False)

    def load(self, agent_id: AgentId) -> Load:
        """Nobody is busy."""
        return IDLE


def subjects_of(events: Sequence[RegistryEvent]) -> list[AgentId]:
    """Whom events are about, each once, in order."""
    return list(dict.fromkeys(event.card.agent_id if isinstance(event, CardStored) else event.agent_id for event in events))


@pytest.fixture
def view() -> StillView:
    """Three agents, all online."""
    return StillView(A, B, C)


async def test_the_present_is_told(view: StillView) -> None:
    """An agent that is there, one whose lease has ended and one that is gone are told apart."""
    feed = RegistryFeed(view)
    view.known[B] = False
    del view.known[C]
    for agent_id in (C, B, A):
        feed.touch(agent_id)
    batch = await anext(feed.batches())
    assert sorted(map(repr, batch)) == sorted(
        map(repr, [CardStored(card(A)), AgentOnline(A), CardStored(card(B)), AgentOffline(B), AgentRemoved(C)])
    )


async def test_an_agent_touched_twice_is_told_once(view: StillView) -> None:
    """However often an agent changes before it is looked at, there is one round of work."""
    feed = RegistryFeed(view)
    for _ in range(5):
        feed.touch(A)
    assert subjects_of(await anext(feed.batches())) == [A]


async def test_a_newcomer_overtakes_a_backlog(view: StillView) -> None:
    """Who registers while thousands wait is in the next batch, and so are those that wait longest."""
    view.known |= {AgentId(f"old-{number}"): True for number in range(1_000)}
    feed = RegistryFeed(view)
    feed.review([])
    feed.touch(A)
    batch = subjects_of(await anext(feed.batches()))
    assert (batch[0], len(batch), B in batch, C in batch) == (A, BATCH_AGENTS, True, True)


async def test_a_review_looks_at_the_registry_and_at_the_index(view: StillView) -> None:
    """Whom only the index knows is looked at too, and found to be gone."""
    feed = RegistryFeed(view)
    feed.review([AgentId("ghost"), A])
    batch = await anext(feed.batches())
    assert (set(subjects_of(batch)), AgentRemoved(AgentId("ghost")) in batch) == ({A, B, C, "ghost"}, True)


async def test_everybody_is_told_in_the_end(view: StillView) -> None:
    """Batch by batch a backlog is worked off, nobody twice."""
    view.known |= {AgentId(f"old-{number}"): True for number in range(100)}
    feed = RegistryFeed(view)
    feed.review([])
    told: list[AgentId] = []
    async for batch in feed.batches():
        told += subjects_of(batch)
        if not feed.waiting:
            break
    assert sorted(told) == sorted(view.known)
