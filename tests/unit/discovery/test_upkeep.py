"""The index follows the registry, also after the index did not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from ioa.concurrency import beside
from ioa.errors import UnavailableError
from ioa.ports.agent_index import Indexed, IndexEntry
from ioa.protocol.ids import AgentId
from ioa.protocol.registry import CardRecord
from ioa.testing.manual_clock import NEW_YEAR
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer
from ioa_discovery.upkeep import BATCH_AGENTS, Upkeep
from ioa_testkit.word_engines import HashingEmbedder
from tests.rig.deadline import eventually
from tests.rig.memory_registry import MemoryRegistryView
from tests.unit.discovery.test_indexer import DIMENSION, A, B, C, agent, card, online


class StillView(MemoryRegistryView):
    """A view of a registry that changes only when a test changes `known`: whether each agent is online."""

    def __init__(self, *agent_ids: AgentId) -> None:
        self.known = dict.fromkeys(agent_ids, True)

    def card(self, agent_id: AgentId) -> CardRecord | None:
        """Return the card of an agent."""
        return CardRecord(card=card(agent_id), registered_at=NEW_YEAR) if agent_id in self.known else None

    def cards(self) -> Sequence[CardRecord]:
        """Return all cards."""
        return [record for agent_id in self.known if (record := self.card(agent_id)) is not None]

    def is_online(self, agent_id: AgentId) -> bool:
        """Whether the agent is online."""
        return self.known.get(agent_id, False)


class UnreliableIndex(ExactIndex):
    """An index that records the order of inserted agents, and does not answer the next `failures` calls."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.failures = 0
        self.inserted: list[AgentId] = []

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert or replace the entries."""
        self._fail()
        await super().put(entries)
        self.inserted += [entry.card.agent_id for entry in entries]

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent."""
        self._fail()
        return await super().indexed()

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise UnavailableError("away")


@pytest.fixture
def index() -> UnreliableIndex:
    """An empty index."""
    return UnreliableIndex()


def keeping(index: ExactIndex, view: StillView) -> Upkeep:
    """Make the upkeep of an index; it retries at once."""
    return Upkeep(Indexer(index, HashingEmbedder()), view, retry=timedelta(0))


async def test_index_equals_the_registry_at_the_start(index: UnreliableIndex) -> None:
    """Missing agents are added, surplus agents removed, and statuses corrected, without an event of the registry."""
    await Indexer(index, HashingEmbedder()).apply(agent(B) | agent(C))
    view = StillView(A, B)
    view.known[B] = False
    async with beside(keeping(index, view).keep()):
        await eventually(lambda: online(index), lambda seen: seen == {A: True, B: False})


async def test_changes_are_followed(index: UnreliableIndex) -> None:
    """An agent that registers, goes offline or leaves is touched, and its present state is indexed."""
    view = StillView(A, B)
    upkeep = keeping(index, view)
    async with beside(upkeep.keep()):
        await eventually(lambda: online(index), lambda seen: len(seen) == 2)
        view.known = {A: False, C: True}
        for agent_id in (A, B, C):
            upkeep.touch(agent_id)
        await eventually(lambda: online(index), lambda seen: seen == {A: False, C: True})


async def test_index_that_failed_is_compared_again(index: UnreliableIndex) -> None:
    """Entries that could not be written are written when the index answers again."""
    index.failures = 3
    async with beside(keeping(index, StillView(A, B)).keep()):
        await eventually(lambda: online(index), lambda seen: len(seen) == 2)


async def test_last_change_is_indexed_before_a_backlog(index: UnreliableIndex) -> None:
    """The agent that changed last is in the next batch, with the agents that wait longest; each is indexed once."""
    view = StillView(*(AgentId(f"old-{number}") for number in range(100)), A)
    upkeep = keeping(index, view)
    upkeep.touch(A)
    async with beside(upkeep.keep()):
        await eventually(lambda: online(index), lambda seen: len(seen) == 101)
    first = index.inserted[:BATCH_AGENTS]
    assert (first[0], "old-0" in first, sorted(index.inserted)) == (A, True, sorted(view.known))
