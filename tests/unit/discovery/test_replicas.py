"""Which replica of a pool is named, and how load moves a score."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from ioa.protocol.agents.search import Hit, Need, Search
from ioa.protocol.cards import AgentCard, Load
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.registry import EMPTY_RENEWAL, CardRecord, Renewal
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.ranking import LOAD_SHIFT
from ioa_discovery.replicas import Replicas
from ioa_discovery.searcher import Searcher
from ioa_testkit.word_engines import HashingEmbedder
from tests.rig.memory_registry import MemoryCards, MemoryLeases, MemoryRegistryView
from tests.unit.group.rules import read

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


FILE = Path(__file__).parents[2] / "data" / "discovery" / "replicas.txt"
RULES = read(FILE)


async def play(town: Town, rule: str) -> str:
    """Return the text of a rule with what its searches find: of each pool a replica, its number of replicas, and its load."""
    lines = [rule.partition("\n> ")[0]]
    for command in [line[2:] for line in rule.splitlines() if line.startswith("> ")]:
        lines.append(f"> {command}")
        verb, *words = shlex.split(command)
        match verb:
            case "search":
                hits = (await town.searcher.search(Search.model_validate_json(words[0]))).merged
                lines += [f"{hit.card.agent_id} of {hit.replicas}, online: {hit.online}, tasks: {hit.load.tasks}" for hit in hits]
            case "join":
                await town.join(AgentCard.model_validate_json(words[0]))
            case "advance":
                town.clock.advance(RENEW_EVERY)
            case _:
                load = {name: int(value) for name, _, value in [word.partition("=") for word in words[1:]]}
                await getattr(town, verb)(words[0], **load)
    return "\n".join([*lines, "", ""])


@pytest.mark.parametrize("rule", RULES, ids=[rule.splitlines()[0][2:] for rule in RULES])
async def test_replica_is_named_as_recorded(town: Town, rule: str) -> None:
    """Each rule of `tests/data/discovery/replicas.txt`."""
    assert (await play(town, rule)).splitlines() == rule.splitlines()


async def test_equally_busy_replicas_share_the_work_evenly(town: Town) -> None:
    """Of 300 searches for different purposes each of three replicas is named for a third, one purpose always the same way."""
    purposes = [TABLES.model_copy(update={"purpose": f"goal-{number}"}) for number in range(300)]
    shares = Counter([(await town.first(search)).card.agent_id for search in purposes])
    again = {(await town.first(purposes[0])).card.agent_id for _ in range(3)}
    assert (sorted(shares.values()), len(again)) == ([100, 100, 100], 1)


async def test_a_busy_pool_loses_a_little_and_says_so(town: Town) -> None:
    """A pool whose least busy replica has every slot taken loses a bounded bit of its score, and is still found first."""
    free = await town.first()
    for number in range(3):
        await town.renew(f"tables-{number}", tasks=9, slots=4)
    hit = await town.first()
    [shift] = hit.why.shifts
    assert (hit.card.pool, shift.cause, shift.reason) == ("tables", "load", "4 of 4 slots taken, 5 tasks waiting")
    assert [hit.why.match, hit.score] == pytest.approx([free.score, free.score - LOAD_SHIFT])
