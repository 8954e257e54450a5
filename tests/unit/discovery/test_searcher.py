"""Searching: needs in, hits by need and a merged list out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ioa.ports.agent_index import Candidate, Candidates, IndexQuery
from ioa.protocol.agents.search import Need, Search, Signal
from ioa.protocol.cards import AgentCard
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId, PoolId
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.searcher import PREFETCH, Searcher
from ioa_testkit.word_engines import HashingEmbedder
from tests.rig.cases import cases


def card(name: str, description: str, *examples: str, pool: str = "") -> AgentCard:
    """Make a card."""
    return AgentCard(agent_id=AgentId(name), name=name, description=description, examples=examples, pool=PoolId(pool or name))


CHARTS = card("charts", "Draws charts of numbers", "draw a bar chart of sales", "plot a line")
TABLES = card("tables", "Computes statistics of tables", "total sales per region")
SONGS = card("songs", "Writes songs")


async def create_searcher(*cards: AgentCard, index: ExactIndex | None = None) -> Searcher:
    """Index cards that are all online."""
    index, embedder = index or ExactIndex(512), HashingEmbedder(dimension=512)
    await Indexer(index, embedder).apply({card.agent_id: RegisteredAgent(card, online=True) for card in cards})
    return Searcher(index, embedder)


def _score_and_name(candidate: Candidate) -> tuple[float, str]:
    return candidate.score, candidate.agent_id


EVERYBODY = 10_000


class ContraryIndex(ExactIndex):
    """Orders equals the other way round, as another engine may."""

    async def search(self, query: IndexQuery) -> Candidates:
        """Find the best."""
        everybody = await super().search(replace(query, limit=EVERYBODY))
        return {signal: sorted(found, key=_score_and_name, reverse=True)[: query.limit] for signal, found in everybody.items()}


def equals(number: int) -> list[AgentCard]:
    """Make agents of as many pools that say the same of themselves."""
    return [
        AgentCard(agent_id=AgentId(f"helper-{at:03}"), name="helper", description="Helps", pool=PoolId(f"helpers-{at:03}"))
        for at in range(number)
    ]


SEARCHES = cases("searches", "discovery")


@pytest.mark.parametrize(("cards", "search", "expected"), [row[1:] for row in SEARCHES], ids=[row[0] for row in SEARCHES])
async def test_search_finds_the_fitting_agents(cards: list[Any], search: Mapping[str, Any], expected: list[list[str]]) -> None:
    """The hits of each need and the merged list name agents and the examples that matched, best first."""
    searcher = await create_searcher(*map(AgentCard.model_validate, cards))
    result = await searcher.search(Search.model_validate(search))
    lists = [*(answer.hits for answer in result.by_need), result.merged]
    assert [
        [f"{hit.card.agent_id} {hit.similarity:.2f} {hit.matched_example}".strip() for hit in hits] for hits in lists
    ] == expected


async def test_replicas_do_not_move_the_scores() -> None:
    """Scaling one agent up changes nobody's score but through the rarity of words."""
    request = Search(needs=(Need(text="draw something", k=3),))
    few = await (await create_searcher(CHARTS, TABLES, SONGS)).search(request)
    twin = TABLES.model_copy(update={"agent_id": AgentId("tables-2")})
    many = await (await create_searcher(CHARTS, TABLES, twin, SONGS)).search(request)
    assert [hit.score for hit in many.merged] == pytest.approx([hit.score for hit in few.merged])


async def test_it_does_not_matter_whom_of_equals_an_engine_finds() -> None:
    """Two replicas of discovery give the same answers, scores included, where more agents are equally near than are asked for."""
    cards = (CHARTS, TABLES, SONGS, *equals(2 * PREFETCH))
    request = Search(needs=(Need(text="a song that helps", k=3),))
    one, other = await create_searcher(*cards), await create_searcher(*cards, index=ContraryIndex(512))
    assert await one.search(request) == await other.search(request)


async def test_equals_are_found_where_there_is_nobody_else() -> None:
    """That others are as good is no reason to find nobody."""
    searcher = await create_searcher(*equals(2 * PREFETCH))
    result = await searcher.search(Search(needs=(Need(text="help", k=3),)))
    assert len(result.merged) == 3


async def test_a_hit_says_why_it_was_found() -> None:
    """A hit names each signal that found it; their mean over the signals its card can have is the match, and its score."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="plot a line of songs"),)))
    found = {hit.card.agent_id: hit for hit in result.merged}
    signals = {name: [one.signal for one in hit.why.signals] for name, hit in found.items()}
    means = {name: sum(one.fused for one in hit.why.signals) / (3 if hit.card.examples else 2) for name, hit in found.items()}
    assert signals == {
        "charts": [Signal.TEXT, Signal.EXAMPLES, Signal.BM25],
        "tables": [Signal.TEXT, Signal.EXAMPLES],
        "songs": [Signal.TEXT, Signal.BM25],
    }
    assert [means[name] for name in found] == pytest.approx([hit.why.match for hit in found.values()])
    assert [hit.score for hit in found.values()] == [hit.why.match for hit in found.values()]


async def test_an_answer_that_is_too_long_is_filled_and_says_so() -> None:
    """Of cards that do not fit into one answer each need keeps its best, and the answer fits."""
    large = [card(f"agent-{number}", "d" * 4_000, *["e" * 700] * 15) for number in range(60)]
    searcher = await create_searcher(*large)
    found = await searcher.search(Search(needs=(Need(text="d", k=60), Need(text="e", k=60))))
    kept = [len(answer.hits) for answer in found.by_need]
    assert (found.complete, 0 < kept[1] <= kept[0] < 60, len(encode(found)) <= MAX_PAYLOAD_BYTES) == (False, True, True)
