"""What discovery asks of the process that owns the index, as plain values. Vectors travel as the bytes of 32-bit floats.

What a search needs are tuples: pickling a frozen dataclass takes several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

TEXT, EXAMPLES, BM25 = "text", "examples", "bm25"
"""The named vectors, as in `ioa.protocol.search.Signal`."""
EXAMPLE_FIELD = "example"
"""Which of its agent's examples a point is, from 1; 0 is the agent itself."""
AGENT_FIELD, POOL_FIELD = "agent_id", "pool"
CARD_FIELD = "card"
EXAMPLES_PER_AGENT = 50
"""As many as a card may have."""
STAMP = "index.json"
"""The file of a store that says of what kind it is, and which shard is the current one."""
EXACT_BELOW_POINTS = 20_000
"""Up to how many matching points all are compared."""
POINTS_PER_AGENT = 2
"""How many points are asked for to find one agent by its examples, and how many times more if these were too few agents."""
WIDER = 4


class Terms(NamedTuple):
    """A sparse vector."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


class PointRecord(NamedTuple):
    """A point: its vectors by name, and its payload."""

    point_id: int
    dense: Mapping[str, bytes]
    terms: Terms | None
    payload: Mapping[str, Any]


class PointQuery(NamedTuple):
    """One need: the best agents by each named vector among those that carry all of `must` and are not among `exclude`.

    Without `dense`, by its terms alone; without terms, by the others alone. None of the pools that `without` names for a vector is
    found by it.
    """

    dense: bytes | None
    terms: Terms | None
    must: tuple[tuple[str, str | int], ...]
    exclude: tuple[str, ...]
    limit: int
    without: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class OpenShard:
    """Open a shard of the store in `folder`.

    Attributes:
        kind: What the vectors and payloads of a store are of: schema and model. A store of another kind is replaced.
        dimension: The vectors' length.
        fields: The payload that candidates come with; the first is the agent's id.
        keywords: The payload that is filtered by, besides `flag`, which is 0 or 1.
        shard: Which shard; by default the one that the store names as its current one, or an empty one if that cannot be read.
    """

    folder: str
    kind: Mapping[str, str | int]
    dimension: int
    fields: tuple[str, ...]
    keywords: tuple[str, ...]
    flag: str
    shard: str = ""


@dataclass(frozen=True, slots=True)
class CopyShard:
    """Open a copy of a shard, of so many points, to build a search tree. Nobody may write to it before the copy is ready."""

    opening: OpenShard
    source: str
    points: int


@dataclass(frozen=True, slots=True)
class ShardState:
    """What was opened: the shard's name, how many points it has, and how many of them are in its search tree."""

    name: str
    points: int
    built_points: int


@dataclass(frozen=True, slots=True)
class PutAgents:
    """Insert or replace all points of some agents."""

    agent_ids: Sequence[str]
    records: Sequence[PointRecord]


@dataclass(frozen=True, slots=True)
class SetPayload:
    """Set some payload of all points of some agents."""

    agent_ids: Sequence[str]
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteAgents:
    """Forget agents."""

    agent_ids: Sequence[str]


class SearchAgents(NamedTuple):
    """Return the `Found` of a query; `exact` compares everything with everything, however much there is."""

    query: PointQuery
    exact: bool = False


class CompareAgents(NamedTuple):
    """Return the `Nearness` of those of the agents that are there."""

    dense: bytes
    agent_ids: Sequence[str]


class Nearness(NamedTuple):
    """How near a need an agent is.

    Attributes:
        card: The payload of this name.
        text: The cosine to the agent's text.
        example: The cosine to the nearest of its examples; -1 without any.
        matched: Which example that is, from 1; 0 without any.
    """

    card: str
    text: float
    example: float
    matched: int


@dataclass(frozen=True, slots=True)
class FetchAgents:
    """Return all points of some agents."""

    agent_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class ScrollAgents:
    """Return a page of agents' payloads, some fields of each, and where the next page begins."""

    fields: Sequence[str]
    offset: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class CountAgents:
    """Return how many agents there are."""


@dataclass(frozen=True, slots=True)
class BuildTree:
    """Build the search tree over all points; return the shard's state. Takes minutes for a hundred thousand agents."""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Bring everything to disk and make this shard the current one of its store.

    `built_points` says over how many points its search tree was built.
    """

    built_points: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Bring everything to disk, so that the next start has nothing to replay."""


Row: TypeAlias = tuple[Any, ...]
"""A candidate: the payload it comes with, in the order of `OpenShard.fields`, of which the first is the agent's id; its score."""
Found: TypeAlias = Mapping[str, Sequence[Row]]
"""For each named vector that was asked for, candidates, best first."""
