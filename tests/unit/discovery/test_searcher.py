"""Searching: needs in, hits by need and a merged list out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ioa.ports.agent_index import Candidate, Found, IndexQuery
from ioa.protocol.cards import AgentCard, Skill
from ioa.protocol.codec import MAX_PAYLOAD_BYTES, encode
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import Filters, Hit, Need, Search, Signal
from ioa_discovery.exact_index import ExactIndex
from ioa_discovery.indexer import Indexer, RegisteredAgent
from ioa_discovery.searcher import PREFETCH, Searcher
from ioa_testkit.word_engines import HashingEmbedder


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

    async def search(self, query: IndexQuery) -> Found:
        """Find the best."""
        everybody = await super().search(replace(query, limit=EVERYBODY))
        candidates = {
            signal: sorted(found, key=_score_and_name, reverse=True)[: query.limit]
            for signal, found in everybody.candidates.items()
        }
        return replace(everybody, candidates=candidates)


def equals(number: int) -> list[AgentCard]:
    """Make agents of as many pools that say the same of themselves."""
    return [
        AgentCard(agent_id=AgentId(f"helper-{at:03}"), name="helper", description="Helps", pool=PoolId(f"helpers-{at:03}"))
        for at in range(number)
    ]


def names(hits: tuple[Hit, ...]) -> list[str]:
    """Return the agents of hits, in order."""
    return [hit.card.agent_id for hit in hits]


async def test_the_fitting_agent_comes_first() -> None:
    """Each need gets its own hits, best first, in the order asked."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="total sales per region"), Need(text="songs about rain"))))
    assert [names(answer.hits)[0] for answer in result.by_need] == ["tables", "songs"]


async def test_a_hit_names_the_example_that_matched() -> None:
    """A hit carries the nearest example, and its similarity to it where that is the best."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="plot a line"),)))
    best = result.by_need[0].hits[0]
    assert (best.card, best.matched_example, round(best.similarity, 6)) == (CHARTS, "plot a line", 1.0)


async def test_keywords_speak_of_the_same_agent() -> None:
    """The keywords of a need are joined to its text and can turn the answer."""
    searcher = await create_searcher(CHARTS, SONGS)
    result = await searcher.search(Search(needs=(Need(text="help me", keywords=("songs", "writes")),)))
    assert names(result.merged)[0] == "songs"


async def test_skills_are_searched() -> None:
    """What stands in a skill is found."""
    skilled = AgentCard(
        agent_id=AgentId("poly"), name="poly", description="Does much", pool=PoolId("poly"), skills=(Skill(name="origami folding"),)
    )
    searcher = await create_searcher(skilled, CHARTS, SONGS)
    result = await searcher.search(Search(needs=(Need(text="origami"),)))
    assert names(result.merged)[0] == "poly"


async def test_one_replica_stands_for_its_pool() -> None:
    """Of replicas one is returned, and fewer agents than `k` are no reason to repeat a pool."""
    replicas = [card(f"tables-{number}", "Computes statistics of tables", pool="tables") for number in range(3)]
    searcher = await create_searcher(*replicas, CHARTS)
    result = await searcher.search(Search(needs=(Need(text="statistics of tables", k=3),)))
    assert names(result.by_need[0].hits) == ["tables-0", "charts"]


async def test_agents_after_large_pools_are_found() -> None:
    """Six pools with more replicas than candidates per signal leave room for the others."""
    names_of = [f"tables {'abcdef'[number]}" for number in range(6)]
    large = [card(f"{name[-1]}-{at:03}", f"Computes {name}", pool=name[-1]) for name in names_of for at in range(3 * PREFETCH)]
    searcher = await create_searcher(*large, CHARTS, SONGS)
    result = await searcher.search(Search(needs=(Need(text="compute tables", k=8),)))
    assert {hit.card.pool for hit in result.merged} == {*"abcdef", "charts", "songs"}


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


async def test_k_limits_the_hits_of_each_need() -> None:
    """A need gets at most the number of hits it asked for."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="sales", k=1), Need(text="songs", k=2))))
    assert [len(answer.hits) for answer in result.by_need] == [1, 2]


async def test_filters_are_those_of_the_need() -> None:
    """Each need of a search has filters of its own."""
    searcher = await create_searcher(CHARTS, TABLES)
    only = Need(text="sales", filters=Filters(pool=PoolId("tables")))
    result = await searcher.search(Search(needs=(only, Need(text="sales"))))
    assert [sorted(names(answer.hits)) for answer in result.by_need] == [["tables"], ["charts", "tables"]]


async def test_a_flat_list_of_characteristics_is_accepted() -> None:
    """The paper's request, a list of characteristics, searches each of them."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search.model_validate({"characteristics": ["songs", "charts"]}))
    assert [names(answer.hits)[0] for answer in result.by_need] == ["songs", "charts"]


async def test_a_budget_cuts_the_merged_list_and_keeps_every_need_served() -> None:
    """The merged list is as long as the budget, and the first of each need come before anybody's second."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="plot a line"), Need(text="songs about rain")), budget=2))
    assert (names(result.merged), len(result.by_need[0].hits)) == (["charts", "songs"], 3)


async def test_who_asks_is_left_out_where_a_need_says_so() -> None:
    """The filter `not_self` holds for its need, and another need of the same search finds the asker."""
    searcher = await create_searcher(CHARTS, TABLES)
    needs = (Need(text="charts", filters=Filters(not_self=True)), Need(text="charts"))
    result = await searcher.search(Search(needs=needs, by=AgentId("charts")))
    assert [names(answer.hits)[0] for answer in result.by_need] == ["tables", "charts"]


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


@pytest.mark.parametrize(
    "text",
    ["画一个销售柱状图", "?!"],
)
async def test_any_language_and_none_is_answered(text: str) -> None:
    """A need in another language, or in none, is answered with the nearest there are."""
    searcher = await create_searcher(CHARTS, TABLES, SONGS)
    assert len((await searcher.search(Search(needs=(Need(text=text),)))).merged) == 3


async def test_a_card_in_another_language_is_found_by_its_words() -> None:
    """Words in common count in any script."""
    searcher = await create_searcher(CHARTS, TABLES, card("zhexian", "绘制销售数据的折线图"))
    assert names((await searcher.search(Search(needs=(Need(text="销售折线图"),)))).merged)[0] == "zhexian"


async def test_an_answer_that_is_too_long_is_filled_and_says_so() -> None:
    """Of cards that do not fit into one answer each need keeps its best, and the answer fits."""
    large = [card(f"agent-{number}", "d" * 4_000, *["e" * 700] * 15) for number in range(60)]
    searcher = await create_searcher(*large)
    found = await searcher.search(Search(needs=(Need(text="d", k=60), Need(text="e", k=60))))
    kept = [len(answer.hits) for answer in found.by_need]
    assert (found.complete, 0 < kept[1] <= kept[0] < 60, len(encode(found)) <= MAX_PAYLOAD_BYTES) == (False, True, True)
