"""Whether the engine is right: asked of it at every start, on a scratch shard, with answers that are known.

What it guards against was seen: a filter that matches nothing, and a search tree without links that silently returns agents
that are not the nearest. Neither raises; discovery would just find the wrong agents.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from ioa_discovery.index.edge_collections import TreeSettings, create_engines
from ioa_discovery.index.edge_shard import Shard
from ioa_discovery.index.shard_requests import (
    AGENT_FIELD,
    BM25,
    EXAMPLE_FIELD,
    EXAMPLES,
    POOL_FIELD,
    TEXT,
    PointQuery,
    PointRecord,
    Terms,
)
from ioa_discovery.vectors import packed_vector

_DIMENSION = 8
_AGENTS = 200
_POOLS = 4
_EXAMPLES = 2
_QUERIES = 5
_BEST = 10
_MIN_RECALL = 0.9
_RARE, _COMMON = 7, 8
_SEED = 3
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of a random name in it; on a disk the check takes several times as long
_ROOM_BYTES = 256 * 1024 * 1024

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class _Agent:
    name: str
    online: int
    pool: str
    group: str
    text: Vector
    examples: tuple[Vector, ...]
    terms: tuple[int, ...]

    def holds(self, field: str, value: str | int) -> bool:
        return {"online": self.online, "pool": self.pool, "group": self.group}[field] == value


def _memory() -> str | None:
    """Choose a folder in memory, or None for the usual one if there is too little of it: a container has 64 MB."""
    roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM_BYTES
    return str(_MEMORY) if roomy else None


def check_engine(kind: type[Shard] = Shard) -> None:
    """Compare what is found in a known set of agents with what is right, first without a search tree and then with one.

    Args:
        kind: What is built around the engine.

    Raises:
        IoaError: The engine gives wrong answers; the message names them.
    """
    agents = list(_agents(random.Random(_SEED)))  # noqa: S311 - the same agents each time
    with tempfile.TemporaryDirectory(prefix="ioa-engine-", dir=_memory(), ignore_cleanup_errors=True) as folder:
        keywords, tree = (AGENT_FIELD, POOL_FIELD, "group"), TreeSettings(from_points=_BEST, threads=1)
        engines = create_engines(Path(folder), _DIMENSION, keywords, "online", tree=tree, wal=False)
        plain, built = kind(engines, [AGENT_FIELD]), kind(engines, [AGENT_FIELD], exact_below=0)
        plain.put([agent.name for agent in agents], [record for agent in agents for record in _records(agent)])
        wrong = [f"{what} without a search tree" for what in _wrong_answers(plain, agents, 1.0)]
        built.build_tree()
        wrong += [f"{what} with a search tree" for what in _wrong_answers(built, agents, _MIN_RECALL)]
        built.close()
    if wrong:
        # Not before it is needed: it brings half of the library.
        from ioa.errors import IoaError

        raise IoaError(
            f"The engine of the index gives wrong answers: {', '.join(wrong)}.",
            hint="Install the version of qdrant-edge-py that IoA asks for, or let IOA_QDRANT_URL name a Qdrant server.",
        )


def _agents(chance: random.Random) -> Iterator[_Agent]:
    for number in range(_AGENTS):
        yield _Agent(
            name=f"agent-{number}",
            online=int(number % 5 > 0),
            pool=f"pool-{number % _POOLS}",
            group=f"group-{chance.randrange(3)}",
            text=_direction(chance),
            examples=tuple(_direction(chance) for _ in range(_EXAMPLES * (number % 2))),
            terms=(_COMMON, _RARE) if number % 20 == 1 else (_COMMON,),
        )


def _records(agent: _Agent) -> Iterator[PointRecord]:
    payload = {AGENT_FIELD: agent.name, "online": agent.online, POOL_FIELD: agent.pool, "group": agent.group}
    first = int(agent.name.removeprefix("agent-")) * (_EXAMPLES + 1)
    terms = Terms(agent.terms, (1.0,) * len(agent.terms))
    yield PointRecord(first, {TEXT: packed_vector(agent.text)}, terms, {**payload, EXAMPLE_FIELD: 0})
    for number, example in enumerate(agent.examples, 1):
        yield PointRecord(first + number, {EXAMPLES: packed_vector(example)}, None, {**payload, EXAMPLE_FIELD: number})


def _wrong_answers(shard: Shard, agents: Sequence[_Agent], wanted: float) -> Iterator[str]:
    """Name the kinds of question of which too few answers are right."""
    nobody: tuple[str, str | int] = ("pool", "pool-0")
    kinds: dict[str, tuple[tuple[str, str | int], ...]] = {
        "a search of everybody": (),
        "a filter by a flag": (("online", 1),),
        "a filter by pool": (nobody,),
        "filters by a flag and two fields": (("online", 1), ("pool", "pool-1"), ("group", "group-2")),
    }
    for what, must in kinds.items():
        chance = random.Random(what)  # noqa: S311 - the same questions each time
        recalls = [_recall(shard, agents, _direction(chance), must) for _ in range(_QUERIES)]
        if sum(recalls) / len(recalls) < wanted:
            yield what


def _recall(shard: Shard, agents: Sequence[_Agent], need: Vector, must: tuple[tuple[str, str | int], ...]) -> float:
    """Return the share of right answers: in order without a search tree, whichever order with one, and rare words first."""
    allowed = [agent for agent in agents[1:] if all(agent.holds(field, value) for field, value in must)]
    query = PointQuery(packed_vector(need), Terms((_COMMON, _RARE), (1.0, 1.0)), must, (agents[0].name,), _BEST, {})
    found = shard.search(query)
    scores: dict[str, Callable[[_Agent], float]] = {
        TEXT: lambda agent: _cosine(need, agent.text),
        EXAMPLES: lambda agent: max(_cosine(need, example) for example in agent.examples),
    }
    hits = total = 0
    for name, score in scores.items():
        with_vector = [agent for agent in allowed if name == TEXT or agent.examples]
        right = {agent.name for agent in sorted(with_vector, key=score, reverse=True)[:_BEST]}
        hits += len(right & {row[0] for row in found[name]})
        total += len(right)
    rare = {agent.name for agent in allowed if _RARE in agent.terms}
    first = {row[0] for row in found[BM25][: len(rare)]}
    in_order = all(scores == sorted(scores, reverse=True) for scores in ([row[-1] for row in rows] for rows in found.values()))
    return hits / total if in_order and len(first & rare) == min(len(rare), _BEST) else 0.0


def _direction(chance: random.Random) -> Vector:
    drawn = [chance.gauss(0, 1) for _ in range(_DIMENSION)]
    length = sqrt(sum(value * value for value in drawn))
    return [value / length for value in drawn]


def _cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
