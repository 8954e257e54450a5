"""Searching: needs in, hits by need and a merged list out."""

from __future__ import annotations

import pytest

from ioa.protocol.cards import AgentCard, Skill
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import Filters, Hit, Need, Search
from ioa.testing.hashing_embedder import HashingEmbedder
from ioa.testing.memory_index import MemoryIndex
from ioa_discovery.indexer import Indexer
from ioa_discovery.searcher import Searcher, merge


def card(name: str, description: str, *examples: str, pool: str = "") -> AgentCard:
    """Make a card."""
    return AgentCard(agent_id=AgentId(name), name=name, description=description, examples=examples, pool=PoolId(pool or name))


CHARTS = card("charts", "Draws charts of numbers", "draw a bar chart of sales", "plot a line")
TABLES = card("tables", "Computes statistics of tables", "total sales per region")
SONGS = card("songs", "Writes songs")


async def searcher_of(*cards: AgentCard) -> Searcher:
    """Index cards that are all online."""
    index, embedder = MemoryIndex(), HashingEmbedder(dimension=512)
    await Indexer(index, embedder).rebuild(cards, [card.agent_id for card in cards])
    return Searcher(index, embedder)


def names(hits: tuple[Hit, ...]) -> list[str]:
    """Return the agents of hits, in order."""
    return [hit.card.agent_id for hit in hits]


async def test_the_fitting_agent_comes_first() -> None:
    """Each need gets its own hits, best first, in the order asked."""
    searcher = await searcher_of(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="total sales per region"), Need(text="songs about rain"))))
    assert [names(answer.hits)[0] for answer in result.by_need] == ["tables", "songs"]


async def test_a_hit_names_the_example_that_matched() -> None:
    """A hit carries the nearest example, and its similarity to it where that is the best."""
    searcher = await searcher_of(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="plot a line"),)))
    best = result.by_need[0].hits[0]
    assert (best.card, best.matched_example, round(best.similarity, 6)) == (CHARTS, "plot a line", 1.0)


async def test_similarity_of_a_card_without_examples_is_that_of_its_text() -> None:
    """An agent without examples is compared by what it says of itself, and no example is named."""
    searcher = await searcher_of(SONGS)
    result = await searcher.search(Search(needs=(Need(text="songs. Writes songs"),)))
    [hit] = result.merged
    assert (round(hit.similarity, 6), hit.matched_example) == (1.0, "")


async def test_keywords_speak_of_the_same_agent() -> None:
    """The keywords of a need are joined to its text and can turn the answer."""
    searcher = await searcher_of(CHARTS, SONGS)
    result = await searcher.search(Search(needs=(Need(text="help me", keywords=("songs", "writes")),)))
    assert names(result.merged)[0] == "songs"


async def test_skills_are_searched() -> None:
    """What stands in a skill is found."""
    skilled = AgentCard(
        agent_id=AgentId("poly"), name="poly", description="Does much", pool=PoolId("poly"), skills=(Skill(name="origami folding"),)
    )
    searcher = await searcher_of(skilled, CHARTS, SONGS)
    result = await searcher.search(Search(needs=(Need(text="origami"),)))
    assert names(result.merged)[0] == "poly"


async def test_one_replica_stands_for_its_pool() -> None:
    """Of replicas one is returned, and fewer agents than `k` are no reason to repeat a pool."""
    replicas = [card(f"tables-{number}", "Computes statistics of tables", pool="tables") for number in range(3)]
    searcher = await searcher_of(*replicas, CHARTS)
    result = await searcher.search(Search(needs=(Need(text="statistics of tables", k=3),)))
    assert names(result.by_need[0].hits) == ["tables-0", "charts"]


async def test_a_large_pool_does_not_crowd_others_out() -> None:
    """More replicas than candidates are asked for leave room for the next agent."""
    replicas = [card(f"tables-{number:03}", "Computes statistics of tables", pool="tables") for number in range(150)]
    searcher = await searcher_of(*replicas, CHARTS)
    result = await searcher.search(Search(needs=(Need(text="statistics of tables", k=2),)))
    assert names(result.by_need[0].hits) == ["tables-000", "charts"]


async def test_replicas_do_not_move_the_scores() -> None:
    """Scaling one agent up changes nobody's score but through the rarity of words."""
    request = Search(needs=(Need(text="draw something", k=3),))
    few = await (await searcher_of(CHARTS, TABLES, SONGS)).search(request)
    twin = TABLES.model_copy(update={"agent_id": AgentId("tables-2")})
    many = await (await searcher_of(CHARTS, TABLES, twin, SONGS)).search(request)
    assert [hit.score for hit in many.merged] == pytest.approx([hit.score for hit in few.merged])


async def test_k_limits_the_hits_of_each_need() -> None:
    """A need gets at most the number of hits it asked for."""
    searcher = await searcher_of(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search(needs=(Need(text="sales", k=1), Need(text="songs", k=2))))
    assert [len(answer.hits) for answer in result.by_need] == [1, 2]


async def test_excluded_agents_are_not_found() -> None:
    """The agent who asks does not find itself."""
    searcher = await searcher_of(CHARTS, TABLES)
    result = await searcher.search(Search(needs=(Need(text="charts"),), exclude=(AgentId("charts"),)))
    assert names(result.merged) == ["tables"]


async def test_filters_are_those_of_the_need() -> None:
    """Each need of a search has filters of its own."""
    searcher = await searcher_of(CHARTS, TABLES)
    only = Need(text="sales", filters=Filters(pool=PoolId("tables")))
    result = await searcher.search(Search(needs=(only, Need(text="sales"))))
    assert [sorted(names(answer.hits)) for answer in result.by_need] == [["tables"], ["charts", "tables"]]


async def test_an_empty_index_answers_with_no_hits() -> None:
    """Without agents each need has an empty answer."""
    result = await (await searcher_of()).search(Search(needs=(Need(text="anything"),)))
    assert (names(result.by_need[0].hits), result.merged) == ([], ())


async def test_a_flat_list_of_characteristics_is_accepted() -> None:
    """The paper's request, a list of characteristics, searches each of them."""
    searcher = await searcher_of(CHARTS, TABLES, SONGS)
    result = await searcher.search(Search.model_validate({"characteristics": ["songs", "charts"]}))
    assert [names(answer.hits)[0] for answer in result.by_need] == ["songs", "charts"]


async def test_merging_takes_turns() -> None:
    """The merged list takes the best of each need before the second of any, each pool once."""
    one, two, three = (Hit(card=each, score=1.0, similarity=1.0) for each in (CHARTS, TABLES, SONGS))
    assert names(merge([(one, two), (one, three)])) == ["charts", "tables", "songs"]
