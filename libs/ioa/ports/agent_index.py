"""The index of agent cards: what discovery asks of a vector engine.

An index answers with the raw scores of each signal and leaves fusing them to its caller. So every engine gives the same
answer, a hit can be explained signal by signal, and replicas of one pool do not distort the scores.

The index is derived from the registry and may be lost at any time. It is opened for one model: an engine that finds a store
of another model, dimension or schema starts empty, and the fingerprints say which cards are missing or stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ioa.ports.embedder import Vector
from ioa.protocol.cards import AgentCard
from ioa.protocol.ids import AgentId, PoolId
from ioa.protocol.search import Filters
from ioa.protocol.search import Signal as Signal

SCHEMA_VERSION = 3
"""Raised whenever what is stored per card changes, so that an older store is rebuilt."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Weights of terms. `indices` are distinct hashes of terms, 32 bit; `values` are their weights."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


NO_TERMS = SparseVector((), ())


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A card with everything it is found by.

    Attributes:
        text: Vector of what the agent says of itself.
        examples: Vectors of its example requests, in the card's order; may be empty.
        terms: BM25 weights of the card's words; may be empty.
        fingerprint: Digest of the card and the model; equal means that there is nothing to do.
    """

    card: AgentCard
    online: bool
    text: Vector
    examples: tuple[Vector, ...]
    terms: SparseVector
    fingerprint: str


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """One need, as an engine sees it: up to `limit` candidates are asked for by each signal.

    Without `dense` only words are compared, and without terms everything else; a signal that is not asked for holds nothing.
    Pools that a signal goes `without` are those that it has found already.
    """

    dense: Vector | None
    terms: SparseVector
    filters: Filters
    exclude: tuple[AgentId, ...]
    limit: int
    without: Mapping[Signal, tuple[PoolId, ...]] = field(default_factory=dict[Signal, tuple[PoolId, ...]])


class Candidate(NamedTuple):
    """An agent that one signal found, with that signal's raw score. A tuple, since a search makes hundreds on the event loop.

    `has_examples` says whether `Signal.EXAMPLES` could have found it, so that silence is not taken for a bad answer.
    """

    agent_id: AgentId
    pool: PoolId
    has_examples: bool
    score: float


class Likeness(NamedTuple):
    """A card beside a need, as near as it really is, whichever signals found it.

    `similarity` is the best cosine, -1 to 1, of the need to the card's text or to one of its examples; `matched_example` is the
    nearest example, empty if there is none.
    """

    card: AgentCard
    similarity: float
    matched_example: str


@dataclass(frozen=True, slots=True)
class Indexed:
    """The state of one agent in the index."""

    fingerprint: str
    online: bool


Candidates = Mapping[Signal, Sequence[Candidate]]
"""Per signal, best first."""


class AgentIndex(Protocol):
    """Store entries and find the nearest by each signal."""

    async def put(self, entries: Sequence[IndexEntry]) -> None:
        """Insert the entries, replacing those of the same agents. Searchable when this returns."""
        ...

    async def set_online(self, agent_ids: Sequence[AgentId], online: bool) -> None:
        """Record whether agents are alive; does nothing for those that are not in the index."""
        ...

    async def remove(self, agent_ids: Sequence[AgentId]) -> None:
        """Forget agents; does nothing for those that are not in the index.

        Their words may go on counting towards the rarity of words until the engine compacts its store.
        """
        ...

    async def search(self, queries: Sequence[IndexQuery]) -> Sequence[Candidates]:
        """Return the candidates of each query, in the order given.

        A signal holds only the cards that have what it looks at: an example, or a word in common with the query.
        """
        ...

    async def compare(self, need: Vector, agent_ids: Sequence[AgentId]) -> Mapping[AgentId, Likeness]:
        """Return how near a need those of the agents are that are in the index."""
        ...

    async def indexed(self) -> Mapping[AgentId, Indexed]:
        """Return the state of every agent in the index."""
        ...

    async def count(self) -> int:
        """Return how many agents the index holds, online or not."""
        ...

    async def aclose(self) -> None:
        """Flush and release the store. Idempotent."""
        ...
