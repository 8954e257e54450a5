"""How what is known of earlier tasks moves what is found."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ioa.protocol.agents.outcomes import HALF_LIFE, MAX_SHIFT, REMEMBERED, UNTRIED, Outcome, kind_of_need
from ioa.protocol.agents.search import Hit, Need, Search
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.testing.manual_clock import NEW_YEAR, ManualClock
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.experience import Experience
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.ranking import REACH
from ioa_discovery.searcher import Searcher
from ioa_testkit.word_engines import HashingEmbedder

SUMS = "total the sales of a table"


def outcome(pool: str, *, done: bool = True, need: str = SUMS, at: datetime = NEW_YEAR) -> Outcome:
    """How a task went."""
    return Outcome(pool=PoolId(pool), need=need, done=done, at=at)


def tables(name: str) -> AgentCard:
    """One of several agents that say the same of themselves."""
    return AgentCard(agent_id=AgentId(name), name="tables", description="Totals the sales of tables", pool=PoolId(name))


OTHERS = tuple(
    AgentCard(agent_id=AgentId(name), name=name, description=what, pool=PoolId(name))
    for name, what in (("songs", "Writes songs"), ("maps", "Draws maps of a town"), ("cook", "Cooks a soup of the day"))
)
TWINS = (tables("tables-a"), tables("tables-b"))


class Market:
    """Agents that match alike, some others, and what is known of how they did."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.experience = Experience(self.clock)
        self._index, self._embedder = ExactIndex(512), HashingEmbedder(dimension=512)

    async def open(self, *cards: AgentCard) -> None:
        """Have agents indexed."""
        await Indexer(self._index, self._embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in cards})

    async def hits(self, need: str = SUMS, *, k: int = 10) -> tuple[Hit, ...]:
        """Search."""
        searcher = Searcher(self._index, self._embedder, experience=self.experience)
        return (await searcher.search(Search(needs=(Need(text=need, k=k),)))).merged


@pytest.fixture
async def market() -> Market:
    """Two agents that match alike, and three others."""
    market = Market()
    await market.open(*TWINS, *OTHERS)
    return market


async def test_nothing_known_moves_nothing(market: Market) -> None:
    """Without outcomes every hit stands where it matches, untried."""
    hits = await market.hits()
    assert [(hit.score, hit.why.shifts, hit.record) for hit in hits] == [(hit.why.match, (), UNTRIED) for hit in hits]


async def test_who_did_well_comes_before_an_equal(market: Market) -> None:
    """Of two that match alike the one that did its tasks comes first, and the hit says why."""
    for done in (True, True, True, False):
        market.experience.add(outcome("tables-a", done=not done))
        market.experience.add(outcome("tables-b", done=done))
    first, second = (await market.hits())[:2]
    [shift] = first.why.shifts
    assert (first.card.agent_id, first.record.done, first.record.failed) == ("tables-b", 3, 1)
    assert (second.record.done, second.record.failed) == (1, 3)
    assert (shift.cause, shift.reason) == ("outcomes", "3 of 4 tasks done, 77% expected for this kind")
    assert [first.score, second.why.match] == pytest.approx([first.why.match + shift.amount, first.why.match])


async def test_a_good_match_never_loses_to_a_popular_mismatch(market: Market) -> None:
    """An agent that fits and always failed stays before agents that do not fit and did everything."""
    for _ in range(REMEMBERED):
        for twin in TWINS:
            market.experience.add(outcome(twin.pool, done=False))
        for other in OTHERS:
            market.experience.add(outcome(other.pool))
    assert {hit.card.agent_id for hit in (await market.hits())[:2]} == {"tables-a", "tables-b"}


async def test_experience_is_that_of_the_kind_of_need(market: Market) -> None:
    """Who did well at one kind of task is not lifted for another as much as who did well at that."""
    for _ in range(8):
        market.experience.add(outcome("tables-a", need="total the sales of a table"))
        market.experience.add(outcome("tables-a", need="translate a poem", done=False))
        market.experience.add(outcome("tables-b", need="total the sales of a table", done=False))
        market.experience.add(outcome("tables-b", need="translate a poem"))
    totals, poems = [
        (await market.hits(need))[0].card.agent_id for need in ("total the sales of a table", "translate a poem, tables")
    ]
    assert (totals, poems) == ("tables-a", "tables-b")


async def test_experience_fades(market: Market) -> None:
    """With time what is known moves less."""
    for _ in range(6):
        market.experience.add(outcome("tables-a", done=False))
    fresh = await shift_of(market, "tables-a")
    market.clock.advance(4 * HALF_LIFE)
    faded = await shift_of(market, "tables-a")
    market.clock.advance(timedelta(days=30))
    assert (fresh < 3 * faded < 0.0, await shift_of(market, "tables-a")) == (True, 0.0)


async def shift_of(market: Market, pool: str) -> float:
    """How far outcomes move a pool."""
    [hit] = [hit for hit in await market.hits() if hit.card.pool == pool]
    return sum(shift.amount for shift in hit.why.shifts)


async def test_only_the_last_outcomes_are_remembered() -> None:
    """A pool's memory is as long as the stream's."""
    experience = Experience(ManualClock())
    for _ in range(REMEMBERED):
        experience.add(outcome("a", done=False))
    for _ in range(REMEMBERED - 1):
        experience.add(outcome("a"))
    record = experience.record(PoolId("a"), kind_of_need(SUMS))
    assert (record.done, record.failed) == (REMEMBERED - 1, 1)


async def test_a_task_that_is_told_again_counts_once() -> None:
    """Whoever repeats one good task makes nobody better."""
    experience = Experience(ManualClock())
    for _ in range(5):
        experience.add(outcome("a").model_copy(update={"task": "room.t1"}))
    experience.add(outcome("a").model_copy(update={"task": "room.t2"}))
    assert experience.record(PoolId("a"), kind_of_need(SUMS)).done == 2


async def test_agent_outside_the_first_is_raised_over_them() -> None:
    """An agent after the `k` best by its match comes first if the others failed, and its score is in reach."""
    market = Market()
    await market.open(*(tables(f"tables-{letter}") for letter in "abcdefgh"), *OTHERS)
    for letter in "abcdefg":
        market.experience.add(outcome(f"tables-{letter}", done=False))
    assert ([hit.card.agent_id for hit in await market.hits(k=1)], REACH > MAX_SHIFT) == (["tables-h"], True)


async def test_outcome_after_the_present_counts_as_one_of_now() -> None:
    """The clock of another process can be ahead."""
    experience = Experience(ManualClock())
    experience.add(outcome("a", at=NEW_YEAR + 4 * HALF_LIFE))
    assert experience.record(PoolId("a"), kind_of_need(SUMS)).evidence == pytest.approx(1.0)
