"""Which replica of a pool is named, and how load moves a score."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.load import Load
from ioa.protocol.registry_records import EMPTY_RENEWAL, CardRecord, Renewal
from ioa.protocol.search import Filters, Hit, Need, Search
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.ranking import LOAD_SHIFT
from ioa_discovery.replicas import Replicas
from ioa_discovery.searcher import Searcher
from ioa_testkit.word_engines import HashingEmbedder
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView

LEASE = timedelta(seconds=10)
RENEW_EVERY = LEASE / 3
TABLES = Search(needs=(Need(text="statistics of tables"),))


def replica(number: int, *, version: str = "1", description: str = "Computes statistics of tables") -> AgentCard:
    """A replica of the pool `tables`."""
    return AgentCard(
        agent_id=AgentId(f"tables-{number}"), name="tables", description=description, pool=PoolId("tables"), version=version
    )


SONGS = AgentCard(agent_id=AgentId("songs"), name="songs", description="Writes songs", pool=PoolId("songs"))
CHARTS = AgentCard(agent_id=AgentId("charts"), name="charts", description="Draws charts of tables", pool=PoolId("charts"))


class Town:
    """Agents that register and renew, and the discovery that follows them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._cards, self._leases = MemoryCards(), MemoryLeases(self.clock, LEASE)
        self.replicas = Replicas(MemoryRegistryView(self._cards, self._leases), self.clock, RENEW_EVERY)
        self._index, self._embedder = ExactIndex(512), HashingEmbedder(dimension=512)
        self.searcher = Searcher(self._index, self._embedder, self.replicas)

    async def put(self, card: AgentCard) -> None:
        """Register an agent; it is not indexed yet."""
        await self._cards.put(card.agent_id, CardRecord(card=card, registered_at=NEW_YEAR))
        await self._leases.put(card.agent_id, EMPTY_RENEWAL)
        self.replicas.touch(card.agent_id)

    async def join(self, *cards: AgentCard) -> None:
        """Register agents, and have them indexed as online."""
        for card in cards:
            await self.put(card)
        known = [record.card for record in self._cards.records.values()]
        await Indexer(self._index, self._embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in known})

    async def renew(self, agent_id: str, **load: int) -> None:
        """Renew a lease, and say how busy the agent is."""
        await self._leases.put(AgentId(agent_id), Renewal(load=Load(**load)))

    async def leave(self, agent_id: str) -> None:
        """Go offline; the index is not told yet."""
        await self._leases.put(AgentId(agent_id), None)

    async def forget(self, agent_id: str) -> None:
        """Take a card out of the registry; the index is not told yet."""
        del self._cards.records[AgentId(agent_id)]
        self.replicas.touch(AgentId(agent_id))

    async def first(self, search: Search = TABLES) -> Hit:
        """Search, and return the best hit."""
        return (await self.searcher.search(search)).merged[0]


@pytest.fixture
async def town() -> Town:
    """A pool of three replicas, and two other agents."""
    town = Town()
    await town.join(*(replica(number) for number in range(3)), SONGS, CHARTS)
    return town


async def test_the_least_busy_replica_is_named(town: Town) -> None:
    """The answer follows the loads that leases tell, with nothing written to the index, and says out of how many it chose."""
    named = []
    for busy in (("tables-0", "tables-1"), ("tables-1", "tables-2"), ("tables-0", "tables-2")):
        for number in range(3):
            await town.renew(f"tables-{number}", tasks=int(f"tables-{number}" in busy), slots=4)
        hit = await town.first()
        named.append((hit.card.agent_id, hit.load, hit.replicas))
    assert named == [(f"tables-{number}", Load(slots=4), 3) for number in (2, 0, 1)]


async def test_slots_count_for_how_busy_a_replica_is(town: Town) -> None:
    """Two tasks of eight slots are less than one of two; of equals, who is in fewer groups is named."""
    await town.renew("tables-0", tasks=1, slots=2)
    await town.renew("tables-1", tasks=2, groups=5, slots=8)
    await town.renew("tables-2", tasks=2, groups=4, slots=8)
    assert (await town.first()).card.agent_id == "tables-2"


async def test_equally_busy_replicas_share_the_work_evenly(town: Town) -> None:
    """Of 300 searches for different purposes each of three replicas is named for a third, one purpose always the same way."""
    purposes = [TABLES.model_copy(update={"purpose": f"goal-{number}"}) for number in range(300)]
    shares = Counter([(await town.first(search)).card.agent_id for search in purposes])
    again = {(await town.first(purposes[0])).card.agent_id for _ in range(3)}
    assert (sorted(shares.values()), len(again)) == ([100, 100, 100], 1)


async def test_lots_are_drawn_alike_everywhere_and_evenly() -> None:
    """Without a memory of answers, 300 purposes spread over three idle replicas, the same way on two replicas of discovery."""
    named = []
    for purpose in range(300):
        one, other = Town(), Town()
        for town in (one, other):
            for number in range(3):
                await town.put(replica(number))
        found = AgentId("tables-0")
        chosen = [town.replicas.name(found, purpose=str(purpose), allowed=lambda *_: True) for town in (one, other)]
        assert chosen[0] is not None and chosen[0] == chosen[1]
        named.append(chosen[0].agent_id)
    assert [75 <= share <= 125 for share in Counter(named).values()] == [True] * 3


async def test_a_burst_between_two_renewals_is_shared(town: Town) -> None:
    """Whoever was just named counts as busier until its lease can tell, so that one idle replica does not get it all."""
    await town.renew("tables-0", tasks=2, slots=4)
    await town.renew("tables-1", tasks=2, slots=4)
    await town.renew("tables-2", slots=4)
    burst = [TABLES.model_copy(update={"purpose": f"goal-{number}"}) for number in range(8)]
    shares = Counter([str((await town.first(search)).card.agent_id) for search in burst])
    town.clock.advance(RENEW_EVERY)
    later = (await town.first(TABLES.model_copy(update={"purpose": "goal-9"}))).card.agent_id
    assert (shares["tables-2"], shares["tables-0"], shares["tables-1"], later) == (4, 2, 2, "tables-2")


async def test_a_search_without_a_purpose_hands_nothing_over(town: Town) -> None:
    """Looking who is there changes nothing."""
    assert len({(await town.first()).card.agent_id for _ in range(20)}) == 1


async def test_a_replica_that_went_offline_is_not_named(town: Town) -> None:
    """The lease decides, however far the index lags; a pool of which nobody is left is out."""
    await town.leave("tables-0")
    await town.leave("tables-1")
    last = await town.first()
    await town.leave("tables-2")
    left = {hit.card.agent_id for hit in (await town.searcher.search(TABLES)).merged}
    assert ((last.card.agent_id, last.replicas), left) == (("tables-2", 1), {"songs", "charts"})


async def test_agents_that_are_offline_are_found_where_that_is_asked(town: Town) -> None:
    """Without the filter a replica that is online comes first, and one that is not says so."""
    everybody = Search(needs=(Need(text="statistics of tables", filters=Filters(online=False)),))
    await town.leave("tables-0")
    await town.leave("tables-1")
    online = await town.first(everybody)
    await town.leave("tables-2")
    offline = await town.first(everybody)
    assert [(hit.card.pool, hit.online, hit.replicas) for hit in (online, offline)] == [("tables", True, 3), ("tables", False, 3)]


async def test_excluded_replicas_are_not_named(town: Town) -> None:
    """Another replica of the pool stands for it."""
    search = TABLES.model_copy(update={"exclude": (AgentId("tables-0"), AgentId("tables-2"))})
    hit = await town.first(search)
    assert (hit.card.agent_id, hit.replicas) == ("tables-1", 1)


async def test_only_replicas_with_the_same_card_stand_for_each_other(town: Town) -> None:
    """While a pool is upgraded, the load never decides for a replica that says something else of itself."""
    await town.join(replica(7, version="2", description="Computes statistics of tables and cubes"))
    for number in range(3):
        await town.renew(f"tables-{number}", tasks=4, slots=4)
    new = Search(needs=(Need(text="cubes", filters=Filters(version="2")),))
    old = Search(needs=(Need(text="statistics of tables", filters=Filters(version="1")),))
    hits = await town.first(old), await town.first(new)
    assert [(hit.card.version, hit.replicas) for hit in hits] == [("1", 3), ("2", 1)]


async def test_a_changed_card_leaves_its_replicas_and_a_forgotten_one_the_answers(town: Town) -> None:
    """The replicas are those of now."""
    await town.join(replica(0, description="Sings"))
    before = (await town.first()).replicas
    await town.forget("tables-1")
    assert (before, (await town.first()).replicas) == (2, 1)


async def test_a_busy_pool_loses_a_little_and_says_so(town: Town) -> None:
    """A pool whose least busy replica has every slot taken loses a bounded bit of its score, and is still found first."""
    free = await town.first()
    for number in range(3):
        await town.renew(f"tables-{number}", tasks=9, slots=4)
    hit = await town.first()
    [shift] = hit.why.shifts
    assert (hit.card.pool, shift.cause, shift.reason) == ("tables", "load", "4 of 4 slots taken, 5 tasks waiting")
    assert [hit.why.match, hit.score] == pytest.approx([free.score, free.score - LOAD_SHIFT])
