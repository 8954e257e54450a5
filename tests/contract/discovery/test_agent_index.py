"""Contract of every index: the exact index and Qdrant (the client's local mode and a server)."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Sequence
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from ioa.errors import UnavailableError
from ioa.ports.agent_index import AgentIndex, Candidates, Indexed, IndexEntry, IndexQuery, Signal
from ioa.ports.embedder import Vector
from ioa.protocol.agents.search import Filters
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa_discovery.exact_index import MAX_AGENTS, ExactIndex
from ioa_discovery.qdrant_index import MEMORY, collection_name, open_qdrant_index
from ioa_discovery.terms import document_terms, query_terms

SERVER = os.environ.get("QDRANT_URL", "")
# The client's local mode computes on the event loop.
ENGINES = ["exact", pytest.param("client", marks=pytest.mark.blocks_loop), *(["server"] if SERVER else [])]
DIMENSION = 4
NORTH, EAST, BETWEEN, UP = (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.6, 0.8, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]


@pytest.fixture(params=ENGINES)
async def index(request: pytest.FixtureRequest) -> AsyncIterator[AgentIndex]:
    """An empty index of each engine."""
    match request.param:
        case "exact":
            exact = ExactIndex(DIMENSION)
            yield exact
        case "client":
            async with open_qdrant_index(MEMORY, model_id="m", dimension=DIMENSION) as client:
                yield client
        case _:
            async with open_qdrant_index(SERVER, model_id=uuid4().hex, dimension=DIMENSION) as server:
                yield server


def entry(
    name: str,
    text: Vector = NORTH,
    *,
    examples: tuple[Vector, ...] = (),
    words: str = "",
    online: bool = True,
    pool: str = "",
    tags: tuple[str, ...] = (),
    version: str = "1",
) -> IndexEntry:
    """Make an entry whose vectors and words are given."""
    card = AgentCard(
        agent_id=AgentId(name),
        name=name,
        description=words or name,
        pool=PoolId(pool or name),
        tags=tags,
        version=version,
        examples=tuple(f"example {number}" for number in range(len(examples))),
    )
    return IndexEntry(card, online, text, examples, document_terms(words), fingerprint=f"print-{name}")


def query(
    dense: Vector = NORTH, words: str = "", *, filters: Filters | None = None, exclude: tuple[str, ...] = (), limit: int = 10
) -> IndexQuery:
    """Make a query that every online agent may answer."""
    return IndexQuery(dense, query_terms(words), filters or Filters(), tuple(map(AgentId, exclude)), limit)


async def found(index: AgentIndex, asked: IndexQuery, signal: Signal = Signal.TEXT) -> list[str]:
    """Return the ids that one signal found, best first."""
    candidates = await index.search(asked)
    return [candidate.agent_id for candidate in candidates[signal]]


@pytest.mark.parametrize("signal", list(Signal))
async def test_large_pool_counts_once(index: AgentIndex, signal: Signal) -> None:
    """A pool with more replicas than the limit is one candidate, its best replica, and leaves room for other pools."""
    ours = [entry(f"our-{number:02}", BETWEEN, words="chart", examples=(BETWEEN,), pool="ours") for number in range(20)]
    best = entry("our-best", NORTH, words="chart chart", examples=(NORTH,), pool="ours")
    await index.put([*ours, best, entry("other", EAST, words="chart and many other words", examples=(EAST,))])
    assert await found(index, query(words="chart", limit=2), signal) == ["our-best", "other"]


async def test_offline_agents_are_not_found(index: AgentIndex) -> None:
    """An agent that went offline is out of the results and comes back without its card being stored again."""
    await index.put([entry("a"), entry("b", online=False)])
    assert await found(index, query()) == ["a"]
    await index.set_online([AgentId("a")], False)
    await index.set_online([AgentId("b")], True)
    assert await found(index, query()) == ["b"]


@pytest.mark.parametrize("signal", list(Signal))
async def test_filters_hold_for_each_signal(index: AgentIndex, signal: Signal) -> None:
    """Pool, all of the tags, version and exclusion hold whichever way an agent is found."""
    await index.put(
        [
            entry("a-1", examples=(NORTH,), words="chart", pool="a", tags=("x", "y")),
            entry("a-2", examples=(NORTH,), words="chart", pool="a", tags=("x",)),
            entry("b-1", examples=(NORTH,), words="chart", pool="b", tags=("x", "y"), version="2"),
        ]
    )
    by_pool = query(words="chart", filters=Filters(pool=PoolId("a")))
    by_tags = query(words="chart", filters=Filters(tags=("x", "y")))
    by_version = query(words="chart", filters=Filters(version="2"))
    without = query(words="chart", exclude=("a-1", "b-1"))
    assert set(await found(index, by_pool, signal)) < {"a-1", "a-2"}
    assert sorted(await found(index, by_tags, signal)) == ["a-1", "b-1"]
    assert await found(index, by_version, signal) == ["b-1"]
    assert await found(index, without, signal) == ["a-2"]


async def test_put_replaces(index: AgentIndex) -> None:
    """Storing an agent again replaces all of it, its examples and words too."""
    await index.put([entry("a", NORTH, examples=(NORTH,), words="chart")])
    await index.put([entry("a", EAST, words="table")])
    candidates = await index.search(query(words="chart"))
    assert len(await index.indexed()) == 1
    assert (candidates[Signal.EXAMPLES], candidates[Signal.BM25]) == ([], [])


async def test_removed_agents_are_gone(index: AgentIndex) -> None:
    """A removed agent is neither found nor counted, and removing a stranger does nothing."""
    await index.put([entry("a"), entry("b")])
    await index.remove([AgentId("a"), AgentId("ghost")])
    assert (len(await index.indexed()), await found(index, query())) == (1, ["b"])


async def test_an_agent_is_compared_by_what_is_nearest(index: AgentIndex) -> None:
    """An agent's similarity is the similarity of its text or of its nearest example; the example is returned."""
    by_example = entry("by-example", EAST, examples=(UP, BETWEEN), words="chart", tags=("x",), online=False)
    by_text = entry("by-text", NORTH, examples=(BETWEEN, UP))
    await index.put([by_example, by_text, entry("without", BETWEEN), entry("other", NORTH)])
    near = await index.compare(NORTH, [AgentId(name) for name in ("by-example", "by-text", "without")])
    assert {name: (one.card, round(one.similarity, 5), one.matched_example) for name, one in near.items()} == {
        "by-example": (by_example.card, 0.6, "example 1"),
        "by-text": (by_text.card, 1.0, "example 0"),
        "without": (entry("without").card, 0.6, ""),
    }


async def test_indexed_tells_what_is_stale(index: AgentIndex) -> None:
    """The state of every agent is its fingerprint and its liveness, offline ones included, beyond one page too."""
    names = [f"a{number}" for number in range(1_100)]
    await index.put([entry(name, online=name != "a7") for name in names])
    assert {name: Indexed(f"print-{name}", name != "a7") for name in names} == await index.indexed()


async def test_every_engine_gives_the_same_answer(index: AgentIndex) -> None:
    """On random cards and needs, candidates and scores are equal to the exact index."""
    chance = random.Random(5)
    vocabulary = [f"word{number}" for number in range(30)]
    entries = [
        entry(
            f"a{number}",
            unit(chance),
            examples=tuple(unit(chance) for _ in range(chance.randrange(3))),
            words=" ".join(chance.choices(vocabulary, k=chance.randrange(12))),
            online=chance.random() < 0.8,
            tags=tuple(tag for tag in ("x", "y") if chance.random() < 0.5),
        )
        for number in range(60)
    ]
    reference = ExactIndex(DIMENSION)
    for target in (index, reference):
        await target.put(entries)
        await target.set_online([AgentId("a5")], False)
    needs = [
        query(unit(chance), " ".join(chance.choices(vocabulary, k=4)), filters=Filters(tags=tags), exclude=("a1",), limit=100)
        for tags in ((), ("x",), ("x", "y"))
    ]
    expected, actual = [flat([await target.search(need) for need in needs]) for target in (reference, index)]
    assert {place: pytest.approx(score, abs=1e-4) for place, score in expected.items()} == actual


def unit(chance: random.Random) -> Vector:
    """Draw a direction."""
    drawn = [chance.gauss(0, 1) for _ in range(DIMENSION)]
    length = sum(value * value for value in drawn) ** 0.5
    return [value / length for value in drawn]


def flat(answers: Sequence[Candidates]) -> dict[tuple[int, Signal, str], float]:
    """Return the score of each candidate of each signal of each query."""
    return {
        (number, signal, hit.agent_id): hit.score
        for number, answer in enumerate(answers)
        for signal, hits in answer.items()
        for hit in hits
    }


def test_each_model_has_a_collection() -> None:
    """Vectors of two models are in two collections of a Qdrant server, so they are never compared."""
    assert collection_name("m") == collection_name("m") != collection_name("other")


async def test_vector_of_another_length_is_rejected() -> None:
    """A vector of another model's dimension is an error, and changes nothing."""
    index = ExactIndex(DIMENSION)
    await index.put([entry("a")])
    with pytest.raises(ValueError, match="shape"):
        await index.put([entry("b", (1.0,) * (DIMENSION + 1))])
    assert list(await index.indexed()) == ["a"]


@pytest.fixture
def many() -> list[IndexEntry]:
    """As many agents as the exact index is for."""
    chance = random.Random(3)
    return [
        entry(f"a{number}", unit(chance), examples=(unit(chance),) * 2, words=f"w{number % 99} chart")
        for number in range(MAX_AGENTS)
    ]


async def test_large_index_warns_and_stays_exact(many: list[IndexEntry]) -> None:
    """Above the recommended size one warning names the setting for Qdrant, and searches are still exact."""
    index = ExactIndex(DIMENSION)
    await index.put(many)
    with capture_logs() as lines:
        await index.put([entry("near")])
        await index.put([entry("last", UP)])
    assert await found(index, query(limit=1)) == ["near"]
    assert [(line["event"], "IOA_QDRANT_URL" in line["hint"]) for line in lines] == [("index_is_large", True)]


async def test_a_missing_server_is_unavailable() -> None:
    """A server that does not answer is an error that a retry can help."""
    with pytest.raises(UnavailableError, match="Qdrant does not answer"):
        async with open_qdrant_index("http://127.0.0.1:9", model_id="m", dimension=DIMENSION):
            pass
