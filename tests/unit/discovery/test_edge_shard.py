"""A search tree finds what comparing everything with everything finds, whatever is filtered by."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ioa_discovery.index.edge_collections import TreeSettings, create_engines
from ioa_discovery.index.edge_shard import Shard
from ioa_discovery.index.shard_requests import EXAMPLES, TEXT, PointQuery, PointRecord
from ioa_discovery.vectors import packed_vector

DIMENSION = 16
AGENTS = 2_000
BEST = 10
KINDS = 20


def direction(chance: random.Random) -> bytes:
    """Draw a vector."""
    drawn = [chance.gauss(0, 1) for _ in range(DIMENSION)]
    length = sum(value * value for value in drawn) ** 0.5
    return packed_vector([value / length for value in drawn])


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Shard:
    """Agents of many pools and tags, with a search tree that every search goes through."""
    folder = Path(tmp_path_factory.mktemp("shard"))
    tree = TreeSettings(from_points=100, threads=1)
    engines = create_engines(folder, DIMENSION, ("agent_id", "pool", "tags"), "online", tree=tree, wal=False)
    shard = Shard(engines, ["agent_id"], exact_below=0)
    chance = random.Random(1)
    for start in range(0, AGENTS, 500):
        numbers = range(start, start + 500)
        shard.put([f"a{number}" for number in numbers], [point for number in numbers for point in points(number, chance)])
    shard.build_tree()
    return shard


def points(number: int, chance: random.Random) -> list[PointRecord]:
    """Make an agent with two examples."""
    payload = {
        "agent_id": f"a{number}",
        "pool": f"pool-{number % KINDS}",
        "tags": [f"tag-{chance.randrange(KINDS)}"],
        "online": int(chance.random() < 0.5),
    }
    text = PointRecord(3 * number, {TEXT: direction(chance)}, None, {**payload, "example": 0})
    examples = [PointRecord(3 * number + n, {EXAMPLES: direction(chance)}, None, {**payload, "example": n}) for n in (1, 2)]
    return [text, *examples]


@pytest.mark.parametrize(
    "must",
    [(), (("online", 1),), (("pool", "pool-3"),), (("tags", "tag-4"),), (("online", 1), ("tags", "tag-5"))],
    ids=["everybody", "online", "linked field", "field without links", "two fields"],
)
def test_a_tree_finds_the_right_agents(shard: Shard, must: tuple[tuple[str, str | int], ...]) -> None:
    """Of the ten nearest at least nine and a half are found on average, and only agents that match."""
    chance = random.Random(2)
    recalls = []
    for _ in range(20):
        query = PointQuery(direction(chance), None, must, (), BEST, {})
        approximate, exact = shard.search(query), shard.search(query, exact=True)
        for name in (TEXT, EXAMPLES):
            found, right = ({row[0] for row in answer[name]} for answer in (approximate, exact))
            recalls.append(len(found & right) / len(right))
    assert sum(recalls) / len(recalls) >= 0.95


def test_agents_with_many_like_examples_do_not_hide_others(tmp_path: Path) -> None:
    """As many agents are found as are wanted, however many points that takes, also when that has changed since the last time."""
    shard = Shard(create_engines(tmp_path, DIMENSION, ("agent_id",), "online", wal=False), ["agent_id"])
    chance = random.Random(3)
    need = direction(chance)
    shard.put(["many"], [example("many", number, need) for number in range(1, 51)])
    shard.put(["few"], [example("few", 51, direction(chance))])
    found = [[row[0] for row in shard.search(PointQuery(need, None, (), (), 2, {}))[EXAMPLES]] for _ in range(2)]
    shard.put(["next"], [example("next", 52, need)])
    found.append([row[0] for row in shard.search(PointQuery(need, None, (), ("many",), 2, {}))[EXAMPLES]])
    assert found == [["many", "few"], ["many", "few"], ["next", "few"]]


def example(agent_id: str, number: int, vector: bytes) -> PointRecord:
    """Make an agent's example."""
    return PointRecord(number, {EXAMPLES: vector}, None, {"agent_id": agent_id, "online": 1, "example": number})
